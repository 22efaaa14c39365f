// SPDX-License-Identifier: Apache-2.0
// Converts pictures of video decoders to RGB or YCbCr.
#pragma once
#include "video/decoder.h"
#include "video/ycbcr.h"

// Writes a rectangle of `picture` as interleaved RGB, or as YCbCr in its own range, 8 bits per channel.
void picture_to_pixels(const Picture &picture, bool as_ycbcr, int64_t y, int64_t x, int64_t height, int64_t width,
                       uint8_t *out, Scratch &scratch);

// Coefficients of a matrix, numbered as in ITU-T H.273, for samples of `bits`.
ycbcr::Coefficients coefficients_of(int64_t matrix, bool full_range, int bits);
