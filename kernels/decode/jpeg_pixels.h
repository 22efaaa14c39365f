// SPDX-License-Identifier: Apache-2.0
// The GPU half of the hybrid JPEG decoder: from the coefficients read by kernels/decode/jpeg_coefficients.cpp to the
// pixels of a window, bit-exact with libjpeg-turbo (accurate DCT, interpolated chroma).
#pragma once
#include "core/tensor.h"

// y, x: origin of the window (oriented); height and width of the stored image, orientation and output_type as in
// DecodeArgs. `record` is the picture's JpegRecord; `planes` the offset of its decoded blocks in the launch's scratch,
// 64 bytes per block. `places` is the offset of its coefficients there, if the GPU has decoded them.
struct JpegPixelsArgs {
  const uint8_t *record;
  int64_t planes, places;
  int64_t y, x;
  int32_t height, width;
  int32_t orientation;
  int32_t output_type;
};

// The position of row r and column c of the oriented image in the stored image of h x w pixels.
SHARED void stored_position(int orientation, int64_t h, int64_t w, int64_t r, int64_t c, int64_t *y, int64_t *x) {
  const bool turned = orientation >= 5;
  const bool down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool left = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int64_t sy = turned ? c : r, sx = turned ? r : c;
  *y = down ? h - 1 - sy : sy;
  *x = left ? w - 1 - sx : sx;
}

// YCbCr of JFIF to RGB in 16-bit fixed point (JFIF 1.02, p. 3). Factors and rounding are libjpeg's.
SHARED uint8_t jpeg_clamp(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }
SHARED void jpeg_rgb(uint8_t *rgb, int32_t y, int32_t cb, int32_t cr) {
  constexpr int32_t half = 1 << 15;
  cb -= 128;
  cr -= 128;
  rgb[0] = jpeg_clamp(y + ((91881 * cr + half) >> 16));                // 1.40200
  rgb[1] = jpeg_clamp(y + ((-22554 * cb - 46802 * cr + half) >> 16));  // 0.34414, 0.71414
  rgb[2] = jpeg_clamp(y + ((116130 * cb + half) >> 16));               // 1.77200
}
// Luma of RGB as libjpeg computes it: 0.299, 0.587, 0.114.
SHARED uint8_t jpeg_gray(const uint8_t *rgb) {
  return (uint8_t)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + (1 << 15)) >> 16);
}
