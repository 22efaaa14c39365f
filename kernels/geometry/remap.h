// SPDX-License-Identifier: Apache-2.0
// Images whose pixels come from places that two maps say: out(x, y) = in(map_x(x, y), map_y(x, y)).
#pragma once
#include "geometry/sampling.h"

struct RemapArgs {
  int64_t origin[2];  // x, y of the first pixel in the whole output, which is as large as the maps
  float shift;     // brings what the maps say to where the centre of the first pixel, or for kNearest its corner, is 0
  uint8_t interp;  // an Interpolation
};

// The lower neighbour along an axis of what a map says, and the weight of the upper one.
SHARED int32_t remap_split(float place, float shift, float *weight) {
  const float x = warp_near(place + shift);
  const int32_t i = warp_floor(x);
  *weight = x - (float)i;
  return i;
}
