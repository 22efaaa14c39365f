// SPDX-License-Identifier: Apache-2.0
// Baseline JPEG from the scan to pixels, a row of MCUs at a time, with libjpeg-turbo's pixels.
#pragma once
#include "decode/codec.h"
#include "decode/libjpeg.h"

// What to write: the part `want` of the scaled stored image, into rows `stride` bytes apart, in d.out_color_space.
struct PixelRows {
  Window want;
  uint8_t *data;
  int64_t stride;
};

// Decodes an image whose header libjpeg has read; its scan begins at `in`. Leaves libjpeg's state unchanged. Returns
// false if the file is of another kind or irregular: libjpeg must decode it. Uses parts 1 and 2 of the scratch.
bool decode_baseline(const jpeg_decompress_struct &d, Bytes in, const PixelRows &out, Scratch &scratch);
