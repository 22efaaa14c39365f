// SPDX-License-Identifier: Apache-2.0
// An image after JPEG compression and decompression.
#pragma once
#include "core/tensor.h"

struct JpegCompressionArgs {
  int32_t quality;    // 1 to 100
  int32_t y, x;       // origin of the output window
  int64_t planes[2];  // GPU: begin and end of the sample's planes in scratch memory
};

// Scales an entry of the quantisation tables of ITU-T T.81, K.1, as libjpeg does.
SHARED int32_t jpeg_quantizer(int32_t base, int32_t quality) {
  const int32_t percent = quality < 50 ? 5000 / quality : 200 - 2 * quality, q = (base * percent + 50) / 100;
  return q < 1 ? 1 : q > 255 ? 255 : q;
}

// RGB to YCbCr of JFIF in 16-bit fixed point. Factors and rounding are libjpeg's.
SHARED int32_t jpeg_luma(int32_t r, int32_t g, int32_t b) {
  return (19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16;  // 0.29900, 0.58700, 0.11400
}
constexpr int32_t kJpegChroma = (128 << 16) + (1 << 15) - 1;
SHARED int32_t jpeg_blue(int32_t r, int32_t g, int32_t b) {
  return (-11059 * r - 21709 * g + 32768 * b + kJpegChroma) >> 16;  // 0.16874, 0.33126, 0.50000
}
SHARED int32_t jpeg_red(int32_t r, int32_t g, int32_t b) {
  return (32768 * r - 27439 * g - 5329 * b + kJpegChroma) >> 16;  // 0.50000, 0.41869, 0.08131
}
