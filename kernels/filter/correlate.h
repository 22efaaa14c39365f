// SPDX-License-Identifier: Apache-2.0
// Correlation of images and volumes with a dense filter (input 1, float32): sum of filter[i] * in[place + i - anchor]
// over i. Input 2, if given, is the value outside for CONSTANT.
#pragma once
#include "core/convert.h"
#include "filter/border.h"

struct CorrelateArgs {
  int32_t anchor[3];  // D, H, W
  int32_t border;
  int32_t has_fill;
  int32_t n_outer, n_space;  // axes before the spatial ones, which are not filtered; spatial axes
};
