// SPDX-License-Identifier: Apache-2.0
// Converts a frame of the GPU's video decoder to interleaved RGB or YCbCr, 8 bits per channel.
#pragma once
#include "video/ycbcr.h"

struct FramePixels {
  const uint8_t *planes[3];  // Y' and chroma; planes[2] = planes[1] + 1 sample if interleaved. Null: only `fill`
  int64_t line;              // bytes between rows of each
  uint8_t *out;
  int32_t y, x, height, width;  // the wanted part of the picture
  int32_t chroma_height, chroma_width;
  ycbcr::Coefficients k;
  int16_t bits, drop;  // `drop` is the number of unused low bits
  int16_t column_shift, row_shift, step, siting, as_ycbcr;
  uint8_t fill[4];
};
