// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu.h"
#include "generic/full.h"

struct __attribute__((aligned(16))) FullUnit {
  uint32_t w[4];
};

// Maps an element of the output to the element of the value.
struct BroadcastPlaces {
  int64_t extent[kMaxDims], step[kMaxDims];
  int ndim;
  DEVICE BroadcastPlaces(const Tensor &to, const Tensor &from) : ndim(to.ndim) {
    int64_t size = 1;
    for (int d = to.ndim - 1, e = from.ndim - 1; d >= 0; d--, e--) {
      const int64_t n = e >= 0 ? from.shape[e] : 1;
      extent[d] = to.shape[d];
      step[d] = n == 1 ? 0 : size;
      size *= n;
    }
  }
  DEVICE int64_t of(int64_t i) const {
    int64_t at = 0;
    for (int d = ndim - 1; d >= 0; d--) {
      at += i % extent[d] * step[d];
      i /= extent[d];
    }
    return at;
  }
};

// A thread writes 16 bytes at a time.
template <class Out, class F>
DEVICE void write_units(const Tensor &out, const F &value_of) {
  constexpr int kUnit = 16 / sizeof(Out);
  const int64_t total = volume_of(out), units = (total + kUnit - 1) / kUnit;
  Out *to = out.template as<Out>();
  const bool aligned = ((unsigned long long)to & 15) == 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += (int64_t)gridDim.x * blockDim.x) {
    const int64_t at = i * kUnit, left = total - at;
    __attribute__((aligned(16))) Out v[kUnit];
#pragma unroll
    for (int k = 0; k < kUnit; k++) v[k] = value_of(k < left ? at + k : at);
    if (aligned && left >= kUnit) {
      *(FullUnit *)(to + at) = *(const FullUnit *)v;
    } else {
#pragma unroll
      for (int k = 0; k < kUnit; k++)
        if (k < left) to[at + k] = v[k];
    }
  }
}

// Fills with the argument `value`.
template <class Out>
DEVICE void full_constant(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Out v = saturate<Out>(((const FullArgs *)l.args[0])[sample].value);
    write_units<Out>(l.tensors[0][sample], [&](int64_t) { return v; });
  }
}

// Fills from an input: one number, or an array that is broadcast.
template <class Out, class In>
DEVICE void full_of(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    if (volume_of(out) == 0) continue;
    const Tensor from = l.tensors[1 + ((const FullArgs *)l.args[0])[sample].from][sample];
    const In *values = from.template as<In>();
    if (volume_of(from) == 1) {
      const Out v = saturate<Out>(values[0]);
      write_units<Out>(out, [&](int64_t) { return v; });
    } else {
      const BroadcastPlaces places(out, from);
      write_units<Out>(out, [&](int64_t i) { return saturate<Out>(values[places.of(i)]); });
    }
  }
}
