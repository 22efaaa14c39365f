// SPDX-License-Identifier: Apache-2.0
// Histogram equalisation of each channel of an 8-bit image.
#pragma once
#include "core/tensor.h"

struct EqualizeArgs {
  int32_t axis;  // of the channels: 0, 2, or -1 if there are none
};

// Equalized value. `below`: number of elements up to this value, without those of the smallest value; `scale`: 255 /
// (number of all elements without those of the smallest value).
SHARED uint8_t equalized(int32_t below, float scale) {
  const float x = rintf((float)below * scale);
  return (uint8_t)(x < 255.0f ? x : 255.0f);
}

// An image as planes of pixels with interleaved channels.
struct ByteImage {
  int64_t planes, pixels, channels;
  SHARED ByteImage(const Tensor &x, int axis) {
    planes = axis == 0 ? x.shape[0] : 1;
    channels = axis == 2 ? x.shape[2] : 1;
    pixels = axis == 0 ? x.shape[1] * x.shape[2] : x.shape[0] * x.shape[1];
  }
};
