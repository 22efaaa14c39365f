// SPDX-License-Identifier: Apache-2.0
// Pictures of video decoders to RGB or YCbCr.
#pragma once
#include "video/decoder.h"
#include "video/ycbcr.h"

// A rectangle of `picture` as interleaved RGB, or as YCbCr in its own range, 8 bits a channel.
void picture_to_pixels(const Picture &picture, bool as_ycbcr, int64_t y, int64_t x, int64_t height, int64_t width,
                       uint8_t *out, Scratch &scratch);

// Of a matrix as ITU-T H.273 numbers it, for samples of `bits`.
ycbcr::Coefficients coefficients_of(int64_t matrix, bool full_range, int bits);
