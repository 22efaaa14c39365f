// SPDX-License-Identifier: Apache-2.0
// Along one axis, each output element is a weighted sum of a run of input elements: filter banks and cosine transforms.
#pragma once
#include "core/tensor.h"

struct WeightedSumsArgs {
  const int32_t *begin;   // per output element: the first input element,
  const int32_t *count;   // how many there are,
  const int32_t *offset;  // and where in `weights` their weights begin
  const float *weights;
  int32_t axis;
  int32_t axes;  // number of summed axes: 1
};
