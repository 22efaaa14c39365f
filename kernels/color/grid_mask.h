// SPDX-License-Identifier: Apache-2.0
// Black squares on a grid, which may be rotated.
#pragma once
#include "core/convert.h"

struct GridMaskArgs {
  float cosine, sine;  // of the angle, divided by the size of a tile
  float left, top;     // the shift divided by the size of a tile
  float ratio;
  int64_t first_y, first_x;  // position of the stored part of the image
  int32_t y_axis, x_axis;
};

SHARED float grid_rest(float u) { return u - floorf(u); }

// Whether the pixel is outside of all squares. `y_cosine` and `y_sine` belong to its row.
SHARED bool grid_keeps(float x, float y_cosine, float y_sine, const GridMaskArgs &a) {
  const float u = x * a.cosine - y_sine - a.left, v = x * a.sine + y_cosine - a.top;
  return !((grid_rest(u) < a.ratio) & (grid_rest(v) < a.ratio));
}
