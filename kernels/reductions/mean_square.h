// SPDX-License-Identifier: Apache-2.0
// Means of squares along some axes, or their square roots.
#pragma once
#include "reductions/reduce_ops.h"

struct MeanSquareArgs {
  uint8_t reduced[kMaxDims];  // per axis: whether it is reduced
  int32_t root;               // whether the square root is taken
};

// Integer outputs are truncated. The mean of no elements is 0 for integer outputs, else NaN.
template <class Out>
SHARED Out finish_mean_square(double sum, int64_t count, bool root) {
  double mean = sum / (double)count;
  if (root) mean = sqrt(mean);
  if constexpr (IsFloat<Out>::value) {
    return (Out)mean;
  } else {
    return count == 0 ? (Out)0 : saturate<Out>(trunc(mean));
  }
}
