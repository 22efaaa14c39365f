// SPDX-License-Identifier: Apache-2.0
// out (3, parameters), float64, along the reduced axes: the number of elements, their mean, and the sum of their
// squared distances from `center` or, without has_center, from the mean.
#pragma once
#include "core/tensor.h"

struct MomentsArgs {
  uint8_t reduced[kMaxDims];  // per axis: whether it is reduced
  int32_t has_center;
  float center;
};
