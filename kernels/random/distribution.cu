// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu.h"
#include "random/beta.h"

struct __attribute__((aligned(16))) Bytes16 {
  uint32_t w[4];
};

// The elements from one block of random words: four, or two of 53 bits each.
template <class Out, int KIND>
struct DeviatesOf {
  static constexpr bool kFine = sizeof(Out) == 8;
  static constexpr int kEach = kFine ? 2 : 4;
  DistributionArgs r;
  double limit, scale;
  DEVICE explicit DeviatesOf(const DistributionArgs &args) : r(args) {
    limit = KIND == kUniform ? limit_below(r.b, r.a, DTypeOf<Out>::value) : no_limit();
    scale = r.b - r.a;
  }
  DEVICE void make(uint32_t block, Out *out) const {
    uint32_t w[4];
    double u[kEach];
    distribution_block(r, block, 0, w);
    if constexpr (KIND == kNormal && !kFine) {
#pragma unroll
      for (int i = 0; i < kEach; i += 2) {
        float a, b;
        normal_pair(w[i], w[i + 1], a, b);
        u[i] = a, u[i + 1] = b;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kEach; i++) u[i] = kFine ? unit_of(w[2 * i], w[2 * i + 1]) : unit_of(w[i]);
      if constexpr (KIND == kNormal) normal_pair(1 - u[0], u[1], u[0], u[1]);
    }
#pragma unroll
    for (int i = 0; i < kEach; i++) {
      double v = u[i];
      if constexpr (KIND == kUniform) v = r.a + scale * v;
      if constexpr (KIND == kNormal) v = r.a + r.b * v;
      if constexpr (KIND == kCoin) v = v < r.a;
      if constexpr (KIND == kValues) v = load(r.table + (int)(v * r.n_table));
      out[i] = deviate_as<Out>(v, limit);
    }
  }
};

// A thread makes 16 bytes at a time.
template <class Out, int KIND>
DEVICE void distribution_all(const Launch &l) {
  typedef DeviatesOf<Out, KIND> Deviates;
  constexpr uint32_t kUnit = 16 / sizeof(Out), kWords = kUnit / Deviates::kEach;
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    const int64_t total = volume_of(out);
    const uint32_t units = (uint32_t)((total + kUnit - 1) / kUnit);
    if (blockIdx.x * blockDim.x >= units) continue;
    const Deviates deviates(((const DistributionArgs *)l.args[0])[sample]);
    Out *to = out.template as<Out>();
    const bool aligned = ((unsigned long long)to & 15) == 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < units; i += gridDim.x * blockDim.x) {
      __attribute__((aligned(16))) Out v[kUnit];
#pragma unroll
      for (uint32_t k = 0; k < kWords; k++) deviates.make(i * kWords + k, v + k * Deviates::kEach);
      const int64_t at = (int64_t)i * kUnit, left = total - at;
      if (aligned && left >= kUnit) {
        *(Bytes16 *)(to + at) = *(const Bytes16 *)v;
      } else {
#pragma unroll
        for (uint32_t k = 0; k < kUnit; k++)
          if (k < left) to[at + k] = v[k];
      }
    }
  }
}

// The beta distribution: a thread makes one number at a time.
template <class Out>
DEVICE void distribution_beta(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    const uint32_t total = (uint32_t)volume_of(out);
    if (blockIdx.x * blockDim.x >= total) continue;
    const DistributionArgs r = ((const DistributionArgs *)l.args[0])[sample];
    const GammaShape a(r.a), b(r.b);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x)
      out.template as<Out>()[i] = deviate_as<Out>(beta_variate(a, b, r, i), no_limit());
  }
}
