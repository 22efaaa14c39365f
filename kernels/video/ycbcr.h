// SPDX-License-Identifier: Apache-2.0
// Y'CbCr to R'G'B' in 16-bit arithmetic, bit-exact on the CPU and the GPU.
#pragma once
#include "core/convert.h"

namespace ycbcr {

struct Coefficients {
  int16_t y, rv, gu, gv, bu;  // products with 15-bit values leave 5 fraction bits
  int16_t black;              // of Y', in the format's units
};

enum Siting { LEFT = 1, CENTRE = 2, TOP_LEFT = 3 };  // of chroma samples, numbered as in FFmpeg

// (a * b + 2^14) >> 15, in a form that compilers turn into one instruction.
SHARED int16_t times(int16_t a, int16_t b) { return (int16_t)(((((int32_t)a * b) >> 14) + 1) >> 1); }

// Here and below, 16-bit results are cast step by step, so that compilers compute twice as many at once.
SHARED uint8_t limit(int16_t x) {
  x = (int16_t)(x + 16);
  x = (int16_t)(x >> 5);
  return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

SHARED int16_t half_of(int16_t x) { return (int16_t)(x >> 1); }

// Converts 15-bit chroma to 8 bits, with unchanged range.
SHARED uint8_t chroma_byte(int16_t x) {
  const int value = ((x + 64) >> 7) + 128;
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace ycbcr
