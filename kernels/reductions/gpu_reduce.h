// SPDX-License-Identifier: Apache-2.0
// Reductions on the GPU. A Job defines what is reduced:
//
//   struct Job {
//     typedef .. Op, Args, Out;                             // Op: see reduce.h
//     DEVICE double center(const Launch &l, int sample, int64_t param);   // if Op::kCentered
//     DEVICE static Out finish(const Args &a, typename Op::Wide total, int64_t count);
//   };
//
// Tensor 0 is the output, tensor 1 the input. The order of additions depends on the shape of the sample and on P only:
// floating-point sums would differ from run to run otherwise.
#pragma once
#include "core/gpu_runs.h"
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

// Reduces the elements begin, begin + step, ... below end of a parameter.
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

// The value of the lane `by` lanes above.
template <class T>
DEVICE T shift_down(T x, int by) {
  if constexpr (sizeof(T) < 4)
    return (T)__shfl_down_sync(0xffffffffu, (int)x, by);
  else
    return __shfl_down_sync(0xffffffffu, x, by);
}

// Merges P numbers over all threads of a block. Only thread 0 gets the results.
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

// Reduces this thread's share of a part of a run of n adjacent elements that belong to P parameters alternately. Reads
// 16 bytes at a time, with any alignment.
template <class Op, int P, int THREADS>
DEVICE void reduce_run(typename Op::Wide (&total)[P], const typename Op::In *in, int64_t n, int part, int parts,
                       const double (&center)[P]) {
  typedef typename Op::In In;
  constexpr int E = 16 / sizeof(In), kAtOnce = 4;
  static_assert(THREADS % P == 0, "the phase of a thread stays");
  const int64_t n_blocks = (n + E - 1) / E, length = (n_blocks + parts - 1) / parts;
  const int64_t begin = part * length, end = begin + length < n_blocks ? begin + length : n_blocks;
  const int phase = (int)((begin + threadIdx.x) * E % P);  // parameter of the first element of a block of 16 bytes
  const bool is_aligned = ((unsigned long long)in & 15) == 0;
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
    if (is_aligned) {  // the last block may exceed the run, but not its memory
#pragma unroll
      for (int k = 0; k < kAtOnce; k++)
        if (i + k * THREADS < end) *(uint4 *)x[k] = __ldg((const uint4 *)in + i + k * THREADS);
    } else {
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) {
        const int64_t left = n - (i + k * THREADS) * E;
        if (i + k * THREADS < end) load_run(x[k], in + (n - left), 0, left < E ? (int)left : E);
      }
    }
    typename Op::Fast few[P];
#pragma unroll
    for (int p = 0; p < P; p++) few[p] = Op::begin();
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      if (i + k * THREADS >= end) continue;
      const int64_t first = (i + k * THREADS) * E;
      if (first + E <= n) {
#pragma unroll
        for (int e = 0; e < E; e++) few[e % P] = Op::add(few[e % P], x[k][e], c[e % P]);
      } else {
#pragma unroll
        for (int e = 0; e < E; e++)
          if (first + e < n) few[e % P] = Op::add(few[e % P], x[k][e], c[e % P]);
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

constexpr int kReduceThreads = 192, kMostReduceParts = 64;
constexpr int64_t kReducePartials = 4 * kMostReduceParts;  // per sample: P is at most 4

// Number of parts in which the parameters of a sample are reduced. `units`: work per item; n: number of items, one per
// block of threads. More parts require more work per part: batches of large samples have enough blocks, and joining
// parts takes time.
DEVICE int reduce_parts_of(int64_t units, int64_t n) {
  int parts = kMostReduceParts;
  while (parts > 1 && (parts * n > kMostReduceParts || (int64_t)parts * parts * (8 * kReduceThreads) > units))
    parts /= 2;
  return parts;
}

// A sample, for both phases.
template <class Job, int P, bool SIMPLE>
struct Reduced {
  typedef typename Job::Op::In In;
  const typename Job::Args a;
  const typename GroupsOf<SIMPLE ? P : 0>::type g;
  const In *in;
  typename Job::Out *out;
  int64_t count, n;  // elements per parameter; items for blocks of threads
  bool in_runs;
  int parts;
  typename Job::Op::Wide *partials;

  DEVICE Reduced(const Launch &l, int sample, bool split)
      : a(reduce_args<Job>(l, sample)), g(l.tensors[1][sample], a.reduced) {
    in = l.tensors[1][sample].template as<In>();
    out = l.tensors[0][sample].template as<typename Job::Out>();
    count = g.count();
    in_runs = SIMPLE || (P && g.period == P);
    n = in_runs ? g.n_params / (P ? P : 1) : g.n_params;
    const int64_t units = in_runs ? count * P / (int64_t)(16 / sizeof(In)) : count;
    parts = split ? reduce_parts_of(units, n) : 1;
    partials = (typename Job::Op::Wide *)l.scratch + sample * kReducePartials;
  }
};

// A block of threads reduces a part of a run (P parameters alternately, also along outer axes) or, if a sample's period
// is not P or P is 0, a part of a parameter. SIMPLE: axes as for RunGroups. SPLIT: samples with much work are reduced
// in parts, which reduce_finish joins.
template <class Job, int P, bool SPLIT, bool SIMPLE>
DEVICE void reduce_parts(const Launch &l) {
  typedef typename Job::Op Op;
  typedef typename Op::Wide Wide;
  constexpr int N = P ? P : 1;
  FOR_SAMPLES(sample, l) {
    const Reduced<Job, P, SIMPLE> r(l, sample, SPLIT);
    for (int64_t i = blockIdx.x; i < r.n * r.parts; i += gridDim.x) {
      const int part = (int)(i % r.parts);
      const int64_t param = i / r.parts * (r.in_runs ? N : 1);
      const typename Op::In *x = r.in + r.g.first(param);
      Wide total[N];
      double center[N];
#pragma unroll
      for (int p = 0; p < N; p++) {
        total[p] = Op::first();
        center[p] = p == 0 || r.in_runs ? center_of<Job>(l, sample, param + p) : 0;
      }
      if (r.in_runs) {
        if constexpr (P > 0)
          for (int64_t k = 0; k < r.count; k += r.g.rows)
            reduce_run<Op, N, kReduceThreads>(total, x + r.g.element(k), r.g.rows * N, part, r.parts, center);
      } else {
        const int64_t length = (r.count + r.parts - 1) / r.parts, begin = part * length;
        const int64_t end = begin + length < r.count ? begin + length : r.count;
        total[0] = reduce_elements<Op>(x, r.g, begin + threadIdx.x, end, kReduceThreads, center[0]);
      }
      join_block<Op, N, kReduceThreads>(total);
      if (threadIdx.x != 0) continue;
#pragma unroll
      for (int p = 0; p < N; p++) {
        if (p > 0 && !r.in_runs) continue;
        if (r.parts == 1)
          r.out[param + p] = Job::finish(r.a, total[p], r.count);
        else
          r.partials[(param + p) * r.parts + part] = total[p];
      }
    }
  }
}

// Joins the parts and writes the outputs.
template <class Job, int P, bool SIMPLE>
DEVICE void reduce_finish(const Launch &l) {
  typedef typename Job::Op Op;
  FOR_SAMPLES(sample, l) {
    const Reduced<Job, P, SIMPLE> r(l, sample, true);
    if (r.parts == 1) continue;
    each_of(r.g.n_params, [&](int64_t p) {
      const typename Op::Wide *parts = r.partials + p * r.parts;
      typename Op::Wide total = parts[0];
      for (int i = 1; i < r.parts; i++) total = Op::merge(total, parts[i]);
      r.out[p] = Job::finish(r.a, total, r.count);
    });
  }
}

// A thread per parameter, for many parameters.
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
