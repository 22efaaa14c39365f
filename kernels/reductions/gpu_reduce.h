// SPDX-License-Identifier: Apache-2.0
// Reductions on the GPU. A Job says what is reduced to what:
//
//   struct Job {
//     typedef .. Op, Args, Out;                             // Op: see reduce.h
//     DEVICE double center(const Launch &l, int sample, int64_t param);   // if Op::kCentered
//     DEVICE static Out finish(const Args &a, typename Op::Wide total, int64_t count);
//   };
//
// Tensor 0 is the output, tensor 1 the input. Parts are joined in an order that depends on the shape only.
#pragma once
#include "math/gpu_groups.h"
#include "reductions/reduce_ops.h"

template <class Job>
DEVICE typename Job::Args reduce_args(const Launch &l, int sample) {
  return ((const typename Job::Args *)l.args[0])[sample];
}

template <class Job>
DEVICE double center_of(const Launch &l, int sample, int64_t param) {
  if constexpr (Job::Op::kCentered)
    return Job::center(l, sample, param);
  else
    return 0;
}

// Elements begin, begin + step, ... below end of a parameter.
template <class Op, class G>
DEVICE typename Op::Wide reduce_elements(const typename Op::In *in, const G &g, int64_t begin, int64_t end,
                                         int64_t step, double center) {
  constexpr int kAtOnce = 4;
  typename Op::Wide total = Op::first();
  int64_t k = begin;
  for (; k + (kAtOnce - 1) * step < end; k += kAtOnce * step) {
    typename Op::In x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) x[i] = load(in + g.element(k + i * step));
    typename Op::Fast f = Op::begin();
#pragma unroll
    for (int i = 0; i < kAtOnce; i++) f = Op::add(f, x[i], center);
    total = Op::join(total, f);
  }
  for (; k < end; k += step) total = Op::join(total, Op::add(Op::begin(), load(in + g.element(k)), center));
  return total;
}

// The value of the thread `by` lanes above.
template <class T>
DEVICE T shift_down(T x, int by) {
  if constexpr (sizeof(T) < 4)
    return (T)__shfl_down_sync(0xffffffffu, (int)x, by);
  else
    return __shfl_down_sync(0xffffffffu, x, by);
}

// What all threads of a block have of P numbers, in thread 0.
template <class Op, int P, int THREADS>
DEVICE void join_block(typename Op::Wide (&x)[P]) {
  typedef typename Op::Wide Wide;
  __shared__ Wide of_warp[P][THREADS / 32];
#pragma unroll
  for (int by = 16; by > 0; by /= 2)
#pragma unroll
    for (int p = 0; p < P; p++) x[p] = Op::merge(x[p], shift_down(x[p], by));
  __syncthreads();
  if (threadIdx.x % 32 == 0)
#pragma unroll
    for (int p = 0; p < P; p++) of_warp[p][threadIdx.x / 32] = x[p];
  __syncthreads();
  if (threadIdx.x == 0)
#pragma unroll
    for (int p = 0; p < P; p++)
      for (int i = 1; i < THREADS / 32; i++) x[p] = Op::merge(x[p], of_warp[p][i]);
}

// Elements of a run of neighbours that belong to P parameters in turn, n of them: those of this thread, of a part of
// the run. Blocks of 16 bytes are read; where there are elements of others in the first and last, they are passed over.
template <class Op, int P, int PARTS, int THREADS>
DEVICE void reduce_run(typename Op::Wide (&total)[P], const typename Op::In *in, int64_t n, int part,
                       const double (&center)[P]) {
  typedef typename Op::In In;
  constexpr int E = 16 / sizeof(In), kAtOnce = 4;
  static_assert(THREADS % P == 0, "the phase of a thread stays");
  const int ahead = (int)((unsigned long long)in & 15) / (int)sizeof(In);
  const int64_t n_blocks = (n + ahead + E - 1) / E, length = (n_blocks + PARTS - 1) / PARTS;
  const int64_t begin = part * length, end = begin + length < n_blocks ? begin + length : n_blocks;
  const uint4 *blocks = (const uint4 *)(in - ahead);
  // The parameter of a block's first element.
  const int phase = (int)((unsigned)((begin + threadIdx.x) * E % P) + P - ahead % P) % P;
  typename Op::Wide lane[P];
  double c[P];
#pragma unroll
  for (int p = 0; p < P; p++) {
    lane[p] = Op::first();
    if constexpr (Op::kCentered) {
#pragma unroll
      for (int q = 0; q < P; q++)
        if ((phase + p) % P == q) c[p] = center[q];
    } else {
      c[p] = 0;
    }
  }
  for (int64_t i = begin + threadIdx.x; i < end; i += kAtOnce * THREADS) {
    In x[kAtOnce][E] __attribute__((aligned(16)));
#pragma unroll
    for (int k = 0; k < kAtOnce; k++)
      if (i + k * THREADS < end) *(uint4 *)x[k] = __ldg(blocks + i + k * THREADS);
    typename Op::Fast few[P];
#pragma unroll
    for (int p = 0; p < P; p++) few[p] = Op::begin();
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      if (i + k * THREADS >= end) continue;
      const int64_t first = (i + k * THREADS) * E - ahead;
      if (first >= 0 && first + E <= n) {
#pragma unroll
        for (int e = 0; e < E; e++) few[e % P] = Op::add(few[e % P], x[k][e], c[e % P]);
      } else {
#pragma unroll
        for (int e = 0; e < E; e++)
          if (first + e >= 0 && first + e < n) few[e % P] = Op::add(few[e % P], x[k][e], c[e % P]);
      }
    }
#pragma unroll
    for (int p = 0; p < P; p++) lane[p] = Op::join(lane[p], few[p]);
  }
#pragma unroll
  for (int p = 0; p < P; p++)
#pragma unroll
    for (int q = 0; q < P; q++)
      if ((phase + p) % P == q) total[q] = Op::merge(total[q], lane[p]);
}

// A block of threads per part of a run of neighbours (P parameters in turn, however often it comes along outer axes),
// or, in samples of another period or with P = 0, per part of a parameter. SIMPLE: as RunGroups has it.
template <class Job, int P, int PARTS, int THREADS, int64_t MOST, bool SIMPLE>
DEVICE void reduce_parts(const Launch &l) {
  typedef typename Job::Op Op;
  typedef typename Op::Wide Wide;
  constexpr int N = P ? P : 1;
  FOR_SAMPLES(sample, l) {
    const auto a = reduce_args<Job>(l, sample);
    const typename GroupsOf<SIMPLE ? P : 0>::type g(l.tensors[1][sample], a.reduced);
    const typename Op::In *in = l.tensors[1][sample].template as<typename Op::In>();
    typename Job::Out *out = l.tensors[0][sample].template as<typename Job::Out>();
    const int64_t count = g.count();
    const bool in_runs = SIMPLE || (P && g.period == P);
    const int64_t n = in_runs ? g.n_params / N : g.n_params;
    for (int64_t i = blockIdx.x; i < n * PARTS; i += gridDim.x) {
      const int part = (int)(i % PARTS);
      const int64_t param = i / PARTS * (in_runs ? N : 1);
      const typename Op::In *x = in + g.first(param);
      Wide total[N];
      double center[N];
#pragma unroll
      for (int p = 0; p < N; p++) {
        total[p] = Op::first();
        center[p] = p == 0 || in_runs ? center_of<Job>(l, sample, param + p) : 0;
      }
      if (in_runs) {
        if constexpr (P > 0)
          for (int64_t k = 0; k < count; k += g.rows)
            reduce_run<Op, N, PARTS, THREADS>(total, x + g.element(k), g.rows * N, part, center);
      } else {
        const int64_t length = (count + PARTS - 1) / PARTS, begin = part * length;
        const int64_t end = begin + length < count ? begin + length : count;
        total[0] = reduce_elements<Op>(x, g, begin + threadIdx.x, end, THREADS, center[0]);
      }
      join_block<Op, N, THREADS>(total);
      if (threadIdx.x != 0) continue;
#pragma unroll
      for (int p = 0; p < N; p++) {
        if (p > 0 && !in_runs) continue;
        if (PARTS == 1)
          out[param + p] = Job::finish(a, total[p], count);
        else
          ((Wide *)l.scratch)[((int64_t)sample * MOST + param + p) * PARTS + part] = total[p];
      }
    }
  }
}

// Outputs from parts.
template <class Job, int P, int PARTS, int64_t MOST>
DEVICE void reduce_finish(const Launch &l) {
  typedef typename Job::Op Op;
  FOR_SAMPLES(sample, l) {
    const auto a = reduce_args<Job>(l, sample);
    const typename GroupsOf<P>::type g(l.tensors[1][sample], a.reduced);
    typename Job::Out *out = l.tensors[0][sample].template as<typename Job::Out>();
    const int64_t count = g.count();
    each_of(g.n_params, [&](int64_t p) {
      const typename Op::Wide *parts = (const typename Op::Wide *)l.scratch + ((int64_t)sample * MOST + p) * PARTS;
      typename Op::Wide total = parts[0];
      for (int i = 1; i < PARTS; i++) total = Op::merge(total, parts[i]);
      out[p] = Job::finish(a, total, count);
    });
  }
}

// A thread per parameter, where there are many.
template <class Job>
DEVICE void reduce_alone(const Launch &l) {
  typedef typename Job::Op Op;
  FOR_SAMPLES(sample, l) {
    const auto a = reduce_args<Job>(l, sample);
    const GpuGroups g(l.tensors[1][sample], a.reduced);
    const typename Op::In *in = l.tensors[1][sample].template as<typename Op::In>();
    typename Job::Out *out = l.tensors[0][sample].template as<typename Job::Out>();
    const int64_t count = g.count();
    each_of(g.n_params, [&](int64_t p) {
      out[p] =
          Job::finish(a, reduce_elements<Op>(in + g.first(p), g, 0, count, 1, center_of<Job>(l, sample, p)), count);
    });
  }
}
