// SPDX-License-Identifier: Apache-2.0
// Converts pictures of video decoders to RGB or YCbCr.
#pragma once
#include "video/decoder.h"
#include "video/ycbcr.h"

struct Rectangle {
  int64_t y, x, height, width;
};

// Where bytes of pixels are written: three planes `plane` bytes apart, interleaved if it is 0. Rows are `pitch` apart.
struct PixelRows {
  uint8_t *data;
  int64_t pitch, plane;
};

// Writes a part of `picture` as RGB, or as YCbCr in its own range, 8 bits per channel. `next_y`: the row that is needed
// afterwards, a hint.
void picture_to_pixels(const Picture &picture, bool as_ycbcr, const Rectangle &part, const PixelRows &out,
                       Scratch &scratch, int64_t next_y = 0);

// Coefficients of a matrix, numbered as in ITU-T H.273, for samples of `bits`.
ycbcr::Coefficients coefficients_of(int64_t matrix, bool full_range, int bits);
