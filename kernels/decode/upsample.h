// SPDX-License-Identifier: Apache-2.0
// Chroma of fewer samples than luma has, brought to its resolution as libjpeg does, to the bit.
#pragma once
#include <cstdint>

// "Fancy" upsampling weighs the two nearest samples 3 to 1 along each axis that is halved, with biases that alternate
// instead of rounding up always; at the rim of the image the nearest sample counts alone.

// Widths double: 2 * n samples of the row. in[-1] and in[n] are read.
void upsample_h2(const uint8_t *in, int64_t n, uint8_t *out);
// Heights double: n samples of a row that is near to one row and farther from another, above or below.
void upsample_v2(const uint8_t *near, const uint8_t *far, bool above, int64_t n, uint8_t *out);
// Both: 2 * n samples. near and far[-1] and [n] are read.
void upsample_h2v2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out);
// Each of n samples `times` times.
void upsample_repeat(const uint8_t *in, int64_t n, int times, uint8_t *out);
