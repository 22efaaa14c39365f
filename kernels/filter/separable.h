// SPDX-License-Identifier: Apache-2.0
// Sums of up to three filters, each of which is a window along each axis of space; what lies outside is reflected
// without the outermost element.
#pragma once
#include "core/convert.h"
#include "filter/border.h"

struct SeparableArgs {
  const float *windows;  // (terms, 3 axes, stride), the axes D, H, W
  int32_t size[9];       // of the windows, odd; 1 along axes that the data do not have
  int32_t stride;
  int32_t terms;
  int32_t n_outer, n_space;  // axes before those of space, which are not filtered, and axes of space
};
