// SPDX-License-Identifier: Apache-2.0
// The colours of JPEG (JFIF: YCbCr of full range, ITU-R BT.601) to RGB as libjpeg computes them, to the bit.
#pragma once
#include <cstdint>

// n pixels of three planes to interleaved ones: red first, or blue.
void ycc_to_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int64_t n, bool blue_first, uint8_t *out);
