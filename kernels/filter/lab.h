// SPDX-License-Identifier: Apache-2.0
// sRGB to CIE L*a*b* and back, 8 bits per channel, in integers, with the precision that OpenCV documents. The tables
// are made in Python (operators/filter/_lab.py).
#pragma once
#include "core/tensor.h"

// Offsets of the tables in one array of uint16.
enum LabTable : int32_t {
  LAB_LINEAR = 0,           // from sRGB values: linear intensity, 2040 is 1.0
  LAB_ROOT = 256,           // from X, Y or Z, 2040 is 1.0: f(t) * 2^15, where f(t) is t^(1/3) or its tangent
  LAB_Y = LAB_ROOT + 3072,  // from L: Y * 2^14
  LAB_F = LAB_Y + 256,      // from L: f(Y) * 2^14
  LAB_GAMMA = LAB_F + 256,  // from linear intensities, 4096 would be 1.0: sRGB values
  LAB_TABLE_SIZE = LAB_GAMMA + 4096
};

struct Lab {
  uint8_t l, a, b;
};

SHARED int32_t lab_clamp(int32_t x, int32_t most) { return x < 0 ? 0 : x > most ? most : x; }

// X, Y or Z (2040 is 1.0) from linear RGB and a row of the matrix times 2^12.
SHARED int32_t lab_xyz(int32_t r, int32_t g, int32_t b, const int32_t *row) {
  return (r * row[0] + g * row[1] + b * row[2] + 2048) >> 12;
}

// L, a and b from f(X), f(Y), f(Z).
SHARED Lab lab_of_roots(int32_t fx, int32_t fy, int32_t fz) {
  const int32_t half = 1 << 14, middle = 128 << 15;
  return Lab{(uint8_t)lab_clamp((296 * fy - 1336934 + half) >> 15, 255),
             (uint8_t)lab_clamp((500 * (fx - fy) + middle + half) >> 15, 255),
             (uint8_t)lab_clamp((200 * (fy - fz) + middle + half) >> 15, 255)};
}

// The inverse of f; argument and result times 2^14.
SHARED int32_t lab_cube(int32_t f) { return f <= 3390 ? (f * 108 - 2259 * 108) / 841 : (f * f >> 14) * f >> 14; }
SHARED int32_t lab_x(int32_t fy, int32_t a) { return lab_cube(fy + ((a * 268435 + 128) >> 13) - 128 * 16384 / 500); }
SHARED int32_t lab_z(int32_t fy, int32_t b) { return lab_cube(fy - (((b * 41943 + 16) >> 9) - 128 * 16384 / 200 + 1)); }

// Index in LAB_GAMMA for R, G or B, from X, Y, Z and a row of the inverse matrix times 2^12.
SHARED int32_t lab_linear(int32_t x, int32_t y, int32_t z, const int32_t *row) {
  return lab_clamp((row[0] * x + row[1] * y + row[2] * z + 8192) >> 14, 4095);
}
