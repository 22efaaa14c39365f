// SPDX-License-Identifier: Apache-2.0
// Regions of several images, put together on a black canvas.
#pragma once
#include "core/convert.h"

struct MultiPasteArgs {
  const int64_t *sources;  // the address of the first element of each image that a region comes from
  const int64_t *widths;   // of these images, in pixels
  const int64_t *places;   // six numbers a region: y, x in the image, height, width, y, x on the canvas
  int32_t regions;
  int32_t dtype;  // of the images
};
