// SPDX-License-Identifier: Apache-2.0
// form: own
// Running sums are added in the CPU's order, as their rounding errors decide where faint sounds end: one thread per
// interval. To keep these threads busy with adding, one warp of a block adds what the others have read. The mean
// squares are then in scratch memory, MOST floats per sample, after the keys of the largest.
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

// A block takes 32 intervals at a time, kSteps elements of each: while warp 0 adds one stage, the others write the mean
// squares of the stage before and read the next one.
template <class In, int WARPS>
DEVICE void nonsilent_mean_squares(const Launch &l, int64_t most) {
  typedef typename NonsilentSum<In>::type Sum;
  constexpr int kSteps = 32, kStages = 2, kRows = 2;  // kRows: rows that a warp reads at once
  __shared__ Sum added[kStages][32][kSteps + 1];
  __shared__ float means_of_stage[kStages][32][kSteps + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  FOR_SAMPLES(sample, l) {
    const NonsilentRegionArgs a = ((const NonsilentRegionArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[2][sample];
    const In *x = in.as<In>();
    const int64_t n = volume_of(in), length = window_of(a, n);
    const int64_t interval = a.reset_interval < 0 || a.reset_interval > n ? n : a.reset_interval;
    float *const means = mean_squares_of(l, sample, most), factor = 1 / (float)length;
    const auto square = [&](int64_t i) {
      const Sum value = i < 0 ? (Sum)0 : (Sum)load(x + i);
      return value * value;
    };
    const int64_t intervals = n ? (n + interval - 1) / interval : 0;
    // First the window that ends with an interval's first element is summed, then the running sum advances.
    const int64_t stages = (length - 1 + interval + kSteps - 1) / kSteps;
    for (int64_t first = (int64_t)blockIdx.x * 32; first < intervals; first += (int64_t)gridDim.x * 32) {
      const int rows = intervals - first < 32 ? (int)(intervals - first) : 32;
      // The element of the signal in a column of a stage, and its index in the interval.
      const auto element = [&](int row, int64_t stage, int64_t &in_interval) {
        in_interval = stage * kSteps + lane - (length - 1);
        return (first + row) * interval + in_interval;
      };
      Sum sum = 0;
      float largest = 0;
      for (int64_t stage = -1; stage <= stages; stage++) {
        if (warp == 0) {
          if (stage >= 0 && stage < stages && lane < rows) {
            const int slot = (int)(stage % kStages);
            const int64_t before = stage * kSteps - (length - 1);  // index of column 0 in the interval
            const int64_t end = n - (first + lane) * interval < interval ? n - (first + lane) * interval : interval;
#pragma unroll 8
            for (int k = 0; k < kSteps; k++) {
              sum += added[slot][lane][k];
              const float mean = (float)sum * factor;
              means_of_stage[slot][lane][k] = mean;
              if (before + k >= 0 && before + k < end) largest = mean > largest ? mean : largest;
            }
          }
        } else {
          for (int first_row = warp - 1; first_row < rows; first_row += kRows * (WARPS - 1)) {
            Sum values[kRows] = {};
#pragma unroll
            for (int r = 0; r < kRows; r++) {
              const int row = first_row + r * (WARPS - 1);
              int64_t at;
              const int64_t i = element(row, stage + 1, at);
              if (stage + 1 < stages && row < rows && at < interval && i < n)
                values[r] = at > 0 ? square(i) - square(i - length) : square(i);
            }
#pragma unroll
            for (int r = 0; r < kRows; r++) {
              const int row = first_row + r * (WARPS - 1);
              if (row >= rows) continue;
              int64_t at;
              const int64_t i = element(row, stage - 1, at);
              if (stage > 0 && at >= 0 && at < interval && i < n)
                means[i] = means_of_stage[(stage - 1) % kStages][row][lane];
              if (stage + 1 < stages) added[(stage + 1) % kStages][row][lane] = values[r];
            }
          }
        }
        __syncthreads();
      }
      if (warp == 0) keep_largest((uint32_t *)l.scratch + sample, key_of(largest));
    }
  }
}

// A block of threads per sample searches from both ends.
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
