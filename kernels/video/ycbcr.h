// SPDX-License-Identifier: Apache-2.0
// Y'CbCr to R'G'B' in 16-bit arithmetic, on the CPU and the GPU to the bit.
#pragma once
#include "core/convert.h"

namespace ycbcr {

struct Coefficients {
  int16_t y, rv, gu, gv, bu;  // products with values of 15 bits leave 5 bits of fraction
  int16_t black;              // of Y', in steps of the format
};

enum Siting { LEFT = 1, CENTRE = 2, TOP_LEFT = 3 };  // of chroma samples, as FFmpeg numbers them

// (a * b + 2^14) >> 15, in the form that compilers know as one instruction.
SHARED int16_t times(int16_t a, int16_t b) { return (int16_t)(((((int32_t)a * b) >> 14) + 1) >> 1); }

// Here and below, what fits into 16 bits is cast to them step by step, so that compilers compute twice as many at once.
SHARED uint8_t limit(int16_t x) {
  x = (int16_t)(x + 16);
  x = (int16_t)(x >> 5);
  return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

SHARED int16_t half_of(int16_t x) { return (int16_t)(x >> 1); }

// Chroma of 15 bits in 8, in the range that it has.
SHARED uint8_t chroma_byte(int16_t x) {
  const int value = ((x + 64) >> 7) + 128;
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace ycbcr
