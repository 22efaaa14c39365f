// SPDX-License-Identifier: Apache-2.0
// Decoders for compressed tiles of FITS images. Each fails on damaged data, and never reads beyond its end.
#pragma once
#include <cstdint>

#include "core/kernel.h"

// Rice code of n pixels: differences in blocks, each with its own number of low bits.
template <class Pixel>
void unrice(const uint8_t *data, int64_t size, int64_t n, int64_t block, int32_t *to);
// PLIO code of n pixels: a list of instructions, with 4 bits of operation and 12 bits of count or amount.
void unplio(const uint8_t *data, int64_t size, int64_t n, int32_t *to);
// HCOMPRESS of n pixels. `is_smooth`: smooth out rounding errors using neighbours.
void unhcompress(const uint8_t *data, int64_t size, int64_t n, bool is_smooth, int32_t *to, Scratch &scratch);
// Returns the number of decompressed bytes, at most `room`.
int64_t gunzip(const uint8_t *data, int64_t size, char *to, int64_t room);
