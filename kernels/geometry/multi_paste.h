// SPDX-License-Identifier: Apache-2.0
// Pastes regions of several images on a black canvas.
#pragma once
#include "core/convert.h"

struct MultiPasteArgs {
  const int64_t *sources;  // address of the image of each region
  const int64_t *widths;   // of these images, in pixels
  const int64_t *places;   // six numbers per region: y, x in the image, height, width, y, x on the canvas
  int32_t regions;
  int32_t dtype;  // of the images
};
