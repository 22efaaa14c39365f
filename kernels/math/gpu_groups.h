// SPDX-License-Identifier: Apache-2.0
// Groups on the GPU: maps element k of a parameter to its offset, and an element to its parameter. A block of threads
// sums a part of a parameter's elements or, if there are many parameters, a thread sums all elements of one.
#pragma once
#include "core/gpu.h"
#include "math/groups.h"

struct GpuGroups : Groups {
  int64_t step[kMaxDims];  // elements per index of an outer axis

  DEVICE GpuGroups(const Tensor &x, const uint8_t *reduced) : Groups(x, reduced) {
    int64_t s = rows * period;
    for (int d = n_outer - 1; d >= 0; d--) step[d] = s, s *= extent[d];
  }
  // A parameter's first element.
  DEVICE int64_t first(int64_t param) const {
    int64_t at = param % period, rest = param / period;
    for (int d = n_outer - 1; d >= 0; d--) {
      if (param_stride[d] == 0) continue;
      at += rest % extent[d] * step[d];
      rest /= extent[d];
    }
    return at;
  }
  // Offset of element k of a parameter from its first element.
  DEVICE int64_t element(int64_t k) const {
    if (k < rows) return k * period;
    int64_t rest = k / rows, at = (k - rest * rows) * period;
    for (int d = n_outer - 1; d >= 0; d--) {
      if (param_stride[d] != 0) continue;
      at += rest % extent[d] * step[d];
      rest /= extent[d];
    }
    return at;
  }
  DEVICE int64_t param_of(int64_t i) const {
    if (n_params == 1) return 0;
    int64_t param = i % period, rest = i / period / rows;
    for (int d = n_outer - 1; d >= 0; d--) {
      param += rest % extent[d] * param_stride[d];
      rest /= extent[d];
    }
    return param;
  }
};

// The same if the kept axes are the first ones and the last ones, the latter with P elements: needs no loops over axes.
template <int P>
struct RunGroups {
  static constexpr int64_t period = P;
  int64_t n_params = 1, n_blocks, rows;
  DEVICE RunGroups(const Tensor &x, const uint8_t *reduced) {
    int64_t volume = 1;
#pragma unroll
    for (int d = 0; d < kMaxDims; d++) {
      const int64_t e = d < x.ndim ? x.shape[d] : 1;
      volume *= e;
      if (!reduced[d]) n_params *= e;
    }
    n_blocks = n_params / P;
    rows = n_params ? volume / n_params : 0;
  }
  DEVICE int64_t count() const { return rows; }
  DEVICE int64_t first(int64_t param) const { return param / P * rows * P + param % P; }
  DEVICE int64_t element(int64_t k) const { return k * P; }
  DEVICE int64_t param_of(int64_t i) const { return i / P / rows * P + i % P; }
};
template <int P>
struct GroupsOf {
  typedef RunGroups<P> type;
};
template <>
struct GroupsOf<0> {
  typedef GpuGroups type;
};

// Sum of f(element) over the elements begin, begin + step, ... below end of a parameter, in float64.
template <class In, class G, class F>
DEVICE double sum_elements(const In *in, const G &g, int64_t begin, int64_t end, int64_t step, const F &f) {
  double total[2] = {};
  int64_t k = begin;
  for (; k + step < end; k += 2 * step) {
    const double a = f((double)load(in + g.element(k))), b = f((double)load(in + g.element(k + step)));
    total[0] += a;
    total[1] += b;
  }
  if (k < end) total[0] += f((double)load(in + g.element(k)));
  return total[0] + total[1];
}

// Sum over the threads of a block. Only thread 0 gets the result.
DEVICE double sum_block(double x) {
  __shared__ double parts[32];
  for (int by = 16; by > 0; by /= 2) x += __shfl_down_sync(0xffffffffu, x, by);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < (int)blockDim.x / 32; i++) total += parts[i];
  return total;
}

constexpr int kMostParts = 64;             // most parts of all parameters of a sample, if the parameters are fewer
constexpr int64_t kElementsOfPart = 4096;  // at least, if there are several parts

// Number of parts in which the `count` elements of a parameter are summed. Depends on the sample only, as
// floating-point sums depend on the partition.
DEVICE int parts_of_each(int64_t n_params, int64_t count) {
  int parts = kMostParts;
  while (parts > 1 && (parts * n_params > kMostParts || parts * kElementsOfPart > count)) parts /= 2;
  return parts;
}

// Sums of parts in scratch memory, sample after sample, with up to MOST parameters each.
template <int MOST>
struct Parts {
  static constexpr int64_t kSums = MOST > kMostParts ? MOST : kMostParts, kSample = 2 * kSums + 2 * MOST;
  const int n;  // parts per parameter
  double *of_sample;
  DEVICE Parts(const Launch &l, int sample, int64_t n_params, int64_t count)
      : n(parts_of_each(n_params, count)), of_sample((double *)l.scratch + sample * kSample) {}
  DEVICE double *sums(int64_t param) const { return of_sample + param * n; }
  DEVICE double *squares(int64_t param) const { return of_sample + kSums + param * n; }
  DEVICE double &mean(int64_t param) const { return of_sample[2 * kSums + param]; }
  DEVICE double &factor(int64_t param) const { return of_sample[2 * kSums + MOST + param]; }
  DEVICE double total(const double *parts) const {
    double t = 0;
    for (int i = 0; i < n; i++) t += parts[i];
    return t;
  }
};

// Calls f(parameter, part, begin, end) for the parts that this block of threads sums.
template <class G, class F>
DEVICE void each_part(const G &g, int parts, const F &f) {
  const int64_t count = g.count(), length = (count + parts - 1) / parts;
  for (int64_t i = blockIdx.x; i < g.n_params * parts; i += gridDim.x) {
    const int part = (int)(i % parts);
    const int64_t begin = part * length, end = begin + length < count ? begin + length : count;
    f(i / parts, part, begin, end);
  }
}

// Calls f(i) for this thread's share of the indices below n.
template <class F>
DEVICE void each_of(int64_t n, const F &f) {
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) f(i);
}
