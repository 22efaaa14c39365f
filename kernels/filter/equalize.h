// SPDX-License-Identifier: Apache-2.0
// Histogram equalisation of each channel of an 8-bit image.
#pragma once
#include "core/tensor.h"

struct EqualizeArgs {
  int32_t axis;  // that counts the channels: 0, 2, or -1 where there are none
};

// What becomes of a value: `below` elements are not larger, not counting those of the smallest value that occurs;
// `scale` is 255 / (all elements, counted in the same way).
SHARED uint8_t equalized(int32_t below, float scale) {
  const float x = rintf((float)below * scale);
  return (uint8_t)(x < 255.0f ? x : 255.0f);
}

// An image as planes of pixels with their channels side by side.
struct ByteImage {
  int64_t planes, pixels, channels;
  SHARED ByteImage(const Tensor &x, int axis) {
    planes = axis == 0 ? x.shape[0] : 1;
    channels = axis == 2 ? x.shape[2] : 1;
    pixels = axis == 0 ? x.shape[1] * x.shape[2] : x.shape[0] * x.shape[1];
  }
};
