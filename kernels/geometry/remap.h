// SPDX-License-Identifier: Apache-2.0
// Images whose pixels are read from the positions in two maps: out(x, y) = in(map_x(x, y), map_y(x, y)).
#pragma once
#include "geometry/sampling.h"

struct RemapArgs {
  int64_t origin[2];  // x, y of the first pixel in the whole output, which has the size of the maps
  float shift;        // added to positions, so that the centre of the first pixel, or for kNearest its corner, is 0
  uint8_t interp;     // an Interpolation
};

// The first position of a map that belongs to an image: half a pixel before the centre of the first pixel.
SHARED float remap_first(int interp, float shift) { return (interp == kNearest ? 0.0f : -0.5f) - shift; }

// Positions from here on are moved to the centre of the last of n pixels. With kLagrange, positions inside the image
// are not moved: neighbours outside repeat the last pixel.
SHARED float remap_end(int interp, int32_t n) { return (float)(interp == kLagrange ? n : n - 1); }

// Splits a position of a map along an axis of n pixels into the lower neighbour and the weight of the upper one.
// Returns -1 if it does not belong to the image, which ends a pixel behind the last centre. `first`: remap_first();
// `end`: remap_end(). Positions before the first centre are moved to it.
SHARED int32_t remap_split(float place, float shift, float first, float end, int32_t n, float *weight) {
  const float x = place + shift, last = (float)(n - 1);
  float near = x > 0.0f ? x : 0.0f;
  near = near < end ? near : last;
  const int32_t i = (int32_t)near;
  *weight = near - (float)i;
  // Without branches, for SIMD.
  const int32_t belongs = (int32_t)(place >= first) & (int32_t)(place < (float)n + (first + 0.5f));
  return i | (belongs - 1);
}
