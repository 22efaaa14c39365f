// SPDX-License-Identifier: Apache-2.0
// Converts colours of JPEG (JFIF: full-range YCbCr, ITU-R BT.601) to RGB as libjpeg does, bit-exact.
#pragma once
#include <cstdint>

// Converts n pixels of three planes to interleaved ones: red first, or blue.
void ycc_to_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int64_t n, bool blue_first, uint8_t *out);
