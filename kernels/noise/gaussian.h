// SPDX-License-Identifier: Apache-2.0
// Adds normally distributed noise.
#pragma once
#include "noise/noise.h"

struct GaussianArgs {
  uint64_t key, position;
  double mean, stddev;
  uint32_t epoch;
};

// Types whose values a float holds exactly are computed in float.
template <class T>
SHARED T with_noise(T x, double mean, double stddev, float z) {
  if constexpr (sizeof(T) <= 2 || IsFloat<T>::value)
    return saturate<T>((float)x + ((float)mean + (float)stddev * z));
  else
    return saturate<T>((double)x + (mean + stddev * (double)z));
}
