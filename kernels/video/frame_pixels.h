// SPDX-License-Identifier: Apache-2.0
// One frame of the GPU's video decoder as interleaved RGB or YCbCr, 8 bits a channel.
#pragma once
#include "video/ycbcr.h"

struct FramePixels {
  const uint8_t *planes[3];  // Y' and chroma; the third is the second where both lie in one, in turn. Null: only `fill`
  int64_t line;              // bytes from row to row of each
  uint8_t *out;
  int32_t y, x, height, width;  // what is wanted of the picture
  int32_t chroma_height, chroma_width;
  ycbcr::Coefficients k;
  int16_t bits, drop;  // `drop` bits lie below the samples
  int16_t column_shift, row_shift, step, siting, as_ycbcr;
  uint8_t fill[4];
};
