// SPDX-License-Identifier: Apache-2.0
// Correlation of images and volumes with a dense filter (input 1, float32); the sum is that of
// filter[i] * in[place + i - anchor] over i. Input 2, if there is one, is what lies outside with CONSTANT.
#pragma once
#include "core/convert.h"
#include "filter/border.h"

struct CorrelateArgs {
  int32_t anchor[3];  // D, H, W
  int32_t border;
  int32_t has_fill;
  int32_t n_outer, n_space;  // axes before those of space, which are not filtered, and axes of space
};
