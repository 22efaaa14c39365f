// SPDX-License-Identifier: Apache-2.0
// form: own
#include "audio/decibels_of_largest.h"
#include "audio/gpu_largest.h"
#include "core/gpu_runs.h"

constexpr int kDecibelRun = 4, kDecibelRuns = 4;  // consecutive elements, and runs per thread at once

// Calls f(i, x, n) for runs of neighbours from element i on; n of them belong to the signal.
template <class F>
DEVICE void each_decibel_run(const float *x, int64_t n, const F &f) {
  constexpr int V = kDecibelRun, U = kDecibelRuns;
  const int64_t step = (int64_t)blockDim.x * V;
  for (int64_t first = blockIdx.x * step * U + threadIdx.x * V; first < n; first += gridDim.x * step * U) {
    float values[U][V] __attribute__((aligned(16)));
#pragma unroll
    for (int k = 0; k < U; k++) {
      const int64_t left = n - first - k * step;
      if (left > 0) load_run(values[k], x + first + k * step, 0, left < V ? (int)left : V);
    }
#pragma unroll
    for (int k = 0; k < U; k++) {
      const int64_t left = n - first - k * step;
      if (left > 0) f(first + k * step, values[k], left < V ? (int)left : V);
    }
  }
}

DEVICE void decibels_find_largest(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample];
    uint32_t most = 0;
    each_decibel_run(in.as<float>(), volume_of(in), [&](int64_t, const float(&x)[kDecibelRun], int n) {
#pragma unroll
      for (int j = 0; j < kDecibelRun; j++)
        if (j < n) most = max(most, key_of(x[j]));
    });
    keep_largest((uint32_t *)l.scratch + sample, most);
  }
}

DEVICE void decibels_convert(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const DecibelsOfLargestArgs a = ((const DecibelsOfLargestArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    float *y = l.tensors[0][sample].as<float>();
    const float found = value_of(((const uint32_t *)l.scratch)[sample]);
    const float unit = 1 / (found > 0 ? found : 1.0f);
    each_decibel_run(in.as<float>(), volume_of(in), [&](int64_t i, const float(&x)[kDecibelRun], int n) {
      float converted[kDecibelRun] __attribute__((aligned(16)));
#pragma unroll
      for (int j = 0; j < kDecibelRun; j++) converted[j] = decibels(x[j], unit, a.multiplier, a.smallest);
      store_run(y + i, converted, 0, n);
    });
  }
}
