// SPDX-License-Identifier: Apache-2.0
// form: own
#include "audio/decibels_of_largest.h"
#include "audio/gpu_largest.h"

DEVICE void decibels_find_largest(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample];
    const float *x = in.as<float>();
    const int64_t n = volume_of(in);
    uint32_t most = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      most = max(most, key_of(load(x + i)));
    keep_largest((uint32_t *)l.scratch + sample, most);
  }
}

DEVICE void decibels_convert(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const DecibelsOfLargestArgs a = ((const DecibelsOfLargestArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const float *x = in.as<float>();
    float *y = l.tensors[0][sample].as<float>();
    const int64_t n = volume_of(in);
    const float found = value_of(((const uint32_t *)l.scratch)[sample]);
    const float unit = 1 / (found == 0 || found <= -3.402823466e38f ? 1.0f : found);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      y[i] = decibels(load(x + i), unit, a.multiplier, a.smallest);
  }
}
