// SPDX-License-Identifier: Apache-2.0
// Mean squared distances from a given mean along some axes, or their square roots.
#pragma once
#include "reductions/reduce_ops.h"

struct VarianceArgs {
  uint8_t reduced[kMaxDims];  // per axis: whether it is reduced
  int32_t ddof;
  int32_t root;  // whether the square root is taken
};

SHARED float finish_variance(double sum, int64_t count, int32_t ddof, bool root) {
  const double variance = sum / (double)(count - ddof);
  return (float)(root ? sqrt(variance) : variance);
}
