// SPDX-License-Identifier: Apache-2.0
// The codes of compressed tiles of FITS images. Each fails where the code is damaged, and reads nothing beyond its end.
#pragma once
#include <cstdint>

#include "core/kernel.h"

// Rice's code of n pixels: their differences, in blocks, each with as many low bits as suit it.
template <class Pixel>
void unrice(const uint8_t *data, int64_t size, int64_t n, int64_t block, int32_t *to);
// PLIO's code of n pixels: a list of instructions, 4 bits for what to do and 12 for how often or by how much.
void unplio(const uint8_t *data, int64_t size, int64_t n, int32_t *to);
// HCOMPRESS of n pixels. `is_smooth`: what was lost by rounding is made up from neighbours.
void unhcompress(const uint8_t *data, int64_t size, int64_t n, bool is_smooth, int32_t *to, Scratch &scratch);
// Gives how many bytes there are, at most `room`.
int64_t gunzip(const uint8_t *data, int64_t size, char *to, int64_t room);
