// SPDX-License-Identifier: Apache-2.0
// form: own
// Running sums are added up in the CPU's order, as their rounding errors decide where faint sounds end: an interval by
// a thread. The mean squares then lie in the scratch memory, MOST floats per sample behind the keys of the largest.
#include "audio/gpu_largest.h"
#include "audio/nonsilent_region.h"

template <class In>
struct NonsilentSum {
  typedef double type;
};
template <>
struct NonsilentSum<float> {
  typedef float type;
};

DEVICE float *mean_squares_of(const Launch &l, int sample, int64_t most) {
  return (float *)l.scratch + l.n + sample * most;
}
DEVICE int64_t window_of(const NonsilentRegionArgs &a, int64_t n) { return a.window_length < n ? a.window_length : n; }

template <class In>
DEVICE void nonsilent_mean_squares(const Launch &l, int64_t most) {
  typedef typename NonsilentSum<In>::type Sum;
  FOR_SAMPLES(sample, l) {
    const NonsilentRegionArgs a = ((const NonsilentRegionArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[2][sample];
    const In *x = in.as<In>();
    const int64_t n = volume_of(in), length = window_of(a, n);
    const int64_t interval = a.reset_interval < 0 || a.reset_interval > n ? n : a.reset_interval;
    float *means = mean_squares_of(l, sample, most), largest = 0;
    const float factor = 1 / (float)length;
    const auto square = [&](int64_t i) {
      const Sum value = i < 0 ? (Sum)0 : (Sum)load(x + i);
      return value * value;
    };
    const int64_t intervals = n ? (n + interval - 1) / interval : 0;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < intervals;
         k += (int64_t)gridDim.x * blockDim.x) {
      const int64_t begin = k * interval, end = begin + interval < n ? begin + interval : n;
      Sum sum = 0;
#pragma unroll 8
      for (int64_t i = begin - length + 1; i <= begin; i++) sum += square(i);
      means[begin] = (float)sum * factor;
      largest = max(largest, means[begin]);
#pragma unroll 8
      for (int64_t i = begin + 1; i < end; i++) {
        sum += square(i) - square(i - length);
        const float mean = (float)sum * factor;
        means[i] = mean;
        largest = mean > largest ? mean : largest;
      }
    }
    keep_largest((uint32_t *)l.scratch + sample, key_of(largest));
  }
}

// A block of threads per sample looks from both ends.
template <int THREADS>
DEVICE void nonsilent_ends(const Launch &l, int64_t most) {
  __shared__ int64_t found[2];
  FOR_SAMPLES(sample, l) {
    const NonsilentRegionArgs a = ((const NonsilentRegionArgs *)l.args[0])[sample];
    const int64_t n = volume_of(l.tensors[2][sample]), length = window_of(a, n);
    const float *means = mean_squares_of(l, sample, most);
    const float reference = a.reference == 0 ? value_of(((const uint32_t *)l.scratch)[sample]) : a.reference;
    const float threshold = a.threshold * reference;
    __syncthreads();
    if (threadIdx.x == 0) found[0] = n, found[1] = -1;
    for (int64_t begin = 0; begin < n; begin += THREADS) {
      const int64_t i = begin + threadIdx.x;
      const bool is_loud = i < n && means[i] >= threshold;
      if (!__syncthreads_or(is_loud)) continue;
      if (is_loud) atomicMin((unsigned long long *)&found[0], (unsigned long long)i);
      break;
    }
    for (int64_t end = n; end > 0; end -= THREADS) {
      const int64_t i = end - 1 - threadIdx.x;
      const bool is_loud = i >= 0 && means[i] >= threshold;
      if (!__syncthreads_or(is_loud)) continue;
      if (is_loud) atomicMax((long long *)&found[1], (long long)i);
      break;
    }
    __syncthreads();
    if (threadIdx.x != 0) continue;
    const int64_t start = found[0] - length + 1 > 0 ? found[0] - length + 1 : 0;
    const bool is_silent = found[1] < 0;
    *l.tensors[0][sample].as<int32_t>() = is_silent ? 0 : (int32_t)start;
    *l.tensors[1][sample].as<int32_t>() = is_silent ? 0 : (int32_t)(found[1] + 1 - start);
  }
}
