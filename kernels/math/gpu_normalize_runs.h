// SPDX-License-Identifier: Apache-2.0
// Phases of normalize for P interleaved parameters along contiguous runs, 16 bytes at a time. `Sample`: Normalized of
// normalize.cu.
#pragma once
#include "core/gpu_runs.h"
#include "math/gpu_groups.h"
#include "math/normalize.h"
#include "reductions/gpu_reduce.h"

template <class Op, int P, int THREADS, class Sample, class Center, class Write>
DEVICE void reduce_runs_of(const Sample &n, int parts, const Center &center_of_param, const Write &write) {
  for (int64_t i = blockIdx.x; i < n.g.n_params / P * parts; i += gridDim.x) {
    const int part = (int)(i % parts);
    const int64_t param = i / parts * P;
    const typename Op::In *in = n.in + n.g.first(param);
    typename Op::Wide total[P];
    double center[P];
#pragma unroll
    for (int p = 0; p < P; p++) total[p] = Op::first(), center[p] = center_of_param(param + p);
    reduce_run<Op, P, THREADS>(total, in, n.g.rows * P, part, parts, center);
    join_block<Op, P, THREADS>(total);
    if (threadIdx.x == 0)
#pragma unroll
      for (int p = 0; p < P; p++) write(param + p, part, total[p]);
  }
}

// Converts a sum to float64. Integers are summed as uint64, signed ones too.
template <class In>
DEVICE double real_sum(uint64_t sum) {
  return IsSigned<In>::value ? (double)(int64_t)sum : (double)sum;
}
template <class In>
DEVICE double real_sum(double sum) {
  return sum;
}

template <class In, bool WHOLE>
struct SumOf : RealSum<In> {};
template <class In>
struct SumOf<In, true> : DeviceSum<In, sizeof(In)> {};

// out = (in - mean) * factor + shift. A thread takes V elements at a time and loads U times before it stores.
template <class Out, int P, int V, int THREADS, int U, class Sample, class Mean, class Factor>
DEVICE void apply_runs(const Sample &n, Out *out, const Mean &mean, const Factor &factor) {
  typedef typename Sample::Element In;
  static_assert(THREADS % P == 0, "the phase of a thread stays");
  const int64_t length = n.g.rows * P;
  const int32_t per_run = (int32_t)((length + V - 1) / V) + 1, chunks = (per_run + THREADS * U - 1) / (THREADS * U);
  for (int64_t i = blockIdx.x; i < n.g.n_blocks * chunks; i += gridDim.x) {
    const int64_t run = i / chunks;
    const int32_t first = (int32_t)(i - run * chunks) * (THREADS * U) + threadIdx.x;
    const In *from = n.in + run * length;
    Out *to = out + run * length;
    const int lead = (int)((unsigned long long)to / sizeof(Out) & (V - 1));
    const int64_t param = run * P;
    const int phase = (int)(((int64_t)first * V + P * V - lead) % P);
    float m[P], rest[P], f[P];
#pragma unroll
    for (int p = 0; p < P; p++) {
      const int64_t q = param + (phase + p) % P;
      const double c = mean(q);
      m[p] = (float)c, rest[p] = (float)(c - m[p]), f[p] = (float)factor(q);
    }
    In x[U][V] __attribute__((aligned(16)));
#pragma unroll
    for (int k = 0; k < U; k++) {
      const int64_t e = (int64_t)(first + k * THREADS) * V - lead, left = length - e;
      if (left > 0) load_run(x[k], from + e, e < 0 ? (int)-e : 0, left < V ? (int)left : V);
    }
#pragma unroll
    for (int k = 0; k < U; k++) {
      const int64_t e = (int64_t)(first + k * THREADS) * V - lead, left = length - e;
      if (left <= 0) continue;
      Out y[V] __attribute__((aligned(16)));
#pragma unroll
      for (int v = 0; v < V; v++)
        y[v] = saturate<Out>(deviation(x[k][v], m[v % P], rest[v % P]) * f[v % P] + n.a.shift);
      store_run(to + e, y, e < 0 ? (int)-e : 0, left < V ? (int)left : V);
    }
  }
}

// A chain of values (core/gpu_chain.h) for a mean and a standard deviation that are arguments.
template <class Out, class In, int V>
struct GivenMoments {
  typedef ::Kind<Out, 1, V, 1, true> Kind;
  typedef ::Kind<In, 1, V, 1, true> From;
  static constexpr int kSteps = 0;
  float mean, factor, shift;

  DEVICE void begin(const Launch &l, int sample) {
    const NormalizeArgs &a = ((const NormalizeArgs *)l.args[0])[sample];
    const double given = a.stddev;
    mean = a.mean, shift = a.shift;
    factor = (float)normalizing_factor(given * given + a.epsilon, a.scale, a.is_estimate);
  }
  DEVICE void map(Out (&out)[V], const In (&in)[V], const Found<0> &) const {
#pragma unroll
    for (int v = 0; v < V; v++) out[v] = saturate<Out>(deviation(in[v], mean, 0) * factor + shift);
  }
};
