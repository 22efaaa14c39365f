// SPDX-License-Identifier: Apache-2.0
// out = (in - mean) * scale / sqrt(stddev^2 + epsilon) + shift, with a mean and a standard deviation for each position
// of the axes that are not reduced.
#pragma once
#include "core/convert.h"

// Where the mean or the standard deviation comes from.
enum Origin : int32_t { COMPUTED, ARGUMENT, INPUT };

struct NormalizeArgs {
  uint8_t reduced[kMaxDims];           // per axis: whether it is reduced
  int32_t mean_origin, stddev_origin;  // inputs come after the data, the mean first
  int32_t is_estimate;                 // whether a stddev that is an input was computed from the data
  int32_t together;                    // GPU only: computed moments are those of all samples together
  int32_t ddof;
  float mean, stddev;
  float epsilon, scale, shift;
};

// Factor for deviations. Computed variances of 0 give 0; a given standard deviation of 0 is divided by.
SHARED double normalizing_factor(double variance, double scale, bool is_estimate) {
  if (is_estimate && !(variance > 0)) return 0;
  return scale / sqrt(variance);
}

// The mean is the sum of two floats, which keeps its precision if it is large relative to the deviations.
SHARED float deviation(float x, float mean, float rest) { return (x - mean) - rest; }
SHARED float deviation(int32_t x, float mean, float rest) { return (float)(((double)x - mean) - rest); }
SHARED float deviation(uint32_t x, float mean, float rest) { return (float)(((double)x - mean) - rest); }
SHARED float deviation(uint8_t x, float mean, float rest) { return deviation((float)x, mean, rest); }
SHARED float deviation(int8_t x, float mean, float rest) { return deviation((float)x, mean, rest); }
SHARED float deviation(uint16_t x, float mean, float rest) { return deviation((float)x, mean, rest); }
SHARED float deviation(int16_t x, float mean, float rest) { return deviation((float)x, mean, rest); }
