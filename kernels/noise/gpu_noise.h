// SPDX-License-Identifier: Apache-2.0
// Distributes the elements of a sample over threads, 16 bytes at a time if the memory is aligned.
#pragma once
#include "core/gpu.h"
#include "core/gpu_units.h"
#include "noise/noise.h"

constexpr uint32_t kNoiseGroup = 4;  // elements per block of random words

// Calls make(group, in, out) for each group of four elements. `group`: index of the group; `in`, `out`: four values.
template <class T, class Make>
DEVICE void each_noise_group(const Tensor &to, const Tensor &from, const Make &make) {
  constexpr uint32_t kUnit = sizeof(T) < 4 ? 16 / sizeof(T) : kNoiseGroup;
  const int64_t total = volume_of(to);
  const uint32_t units = (uint32_t)((total + kUnit - 1) / kUnit);
  T *out = to.template as<T>();
  const T *in = from.template as<T>();
  const bool aligned = is_aligned<Unit16>(out) && is_aligned<Unit16>(in);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < units; i += gridDim.x * blockDim.x) {
    __attribute__((aligned(16))) T x[kUnit], y[kUnit];
    const int64_t at = (int64_t)i * kUnit, left = total - at;
    const bool whole = aligned && left >= kUnit;
    if (whole) {
#pragma unroll
      for (uint32_t k = 0; k < kUnit * sizeof(T) / 16; k++) ((Unit16 *)x)[k] = unit_at<Unit16>(in + at, k);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < kUnit; k++) x[k] = k < left ? load(in + at + k) : T(0);
    }
#pragma unroll
    for (uint32_t k = 0; k < kUnit / kNoiseGroup; k++)
      make(i * (kUnit / kNoiseGroup) + k, x + k * kNoiseGroup, y + k * kNoiseGroup);
    if (whole) {
#pragma unroll
      for (uint32_t k = 0; k < kUnit * sizeof(T) / 16; k++) ((Unit16 *)(out + at))[k] = ((const Unit16 *)y)[k];
    } else {
#pragma unroll
      for (uint32_t k = 0; k < kUnit; k++)
        if (k < left) out[at + k] = y[k];
    }
  }
}
