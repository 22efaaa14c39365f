// SPDX-License-Identifier: Apache-2.0
// Sum of up to three separable filters, each with a window per spatial axis. Borders are reflected (REFLECT_101).
#pragma once
#include "core/convert.h"
#include "filter/border.h"

struct SeparableArgs {
  const float *windows;  // (terms, 3 axes, stride), the axes D, H, W
  int32_t size[9];       // of the windows, odd; 1 along axes that the data doesn't have
  int32_t stride;
  int32_t terms;
  int32_t n_outer, n_space;  // axes before the spatial ones, which are not filtered; spatial axes
};
