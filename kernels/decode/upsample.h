// SPDX-License-Identifier: Apache-2.0
// Upsamples chroma to the resolution of luma as libjpeg does, bit-exact.
#pragma once
#include <cstdint>

// "Fancy" upsampling weighs the two nearest samples 3 to 1 along each halved axis, with alternating biases instead of
// always rounding up; at the rim of the image only the nearest sample counts.

// Doubles widths: 2 * n samples of the row. in[-1] and in[n] are read.
void upsample_h2(const uint8_t *in, int64_t n, uint8_t *out);
// Doubles heights: n samples of a row between a near and a far row, the far one above or below.
void upsample_v2(const uint8_t *near, const uint8_t *far, bool above, int64_t n, uint8_t *out);
// Doubles both: 2 * n samples. near and far[-1] and [n] are read.
void upsample_h2v2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out);
// Repeats each of n samples `times` times.
void upsample_repeat(const uint8_t *in, int64_t n, int times, uint8_t *out);
