// SPDX-License-Identifier: Apache-2.0
// Affine transformations of images and volumes: out(p) = in(matrix * p), in coordinates where (0, 0) is the corner of a
// pixel.
#pragma once
#include "core/convert.h"

struct WarpArgs {
  float matrix[12];   // rows x, y(, z) of `dims` + 1 values each
  float fill;         // stands outside of the input
  uint8_t clamp;      // instead of `fill`, the border is repeated
  uint8_t linear;     // interpolates; else the nearest element
  uint8_t dims;       // 2: ...HWC, 3: ...DHWC
  uint8_t add_steps;  // on the CPU a coordinate is the one before it and a step, as DALI's; else it is that of the GPU
  int64_t origin[3];  // x, y(, z) of the first element of the output in the whole of it
};

// The coordinate along one axis of the input for the element x of a row of the output whose part of the sum is `rest`.
SHARED float warp_coordinate(float step, int32_t x, float rest) { return step * ((float)x + 0.5f) + rest; }

// What the other axes of the output add to a coordinate of the input. `row` is a row of the matrix.
SHARED float warp_rest(const float *row, int dims, float y, float z) {
  return dims == 2 ? row[1] * (y + 0.5f) + row[2] : row[1] * (y + 0.5f) + (row[2] * (z + 0.5f) + row[3]);
}

// x, or a place far outside of any input for what is farther, and for NaN.
SHARED float warp_near(float x) {
  x = x > -1e9f ? x : -1e9f;
  return x < 1e9f ? x : 1e9f;
}

// The largest integer that is not above x, which is `warp_near`.
SHARED int32_t warp_floor(float x) {
#ifdef __CUDA_ARCH__
  return __float2int_rd(x);
#else
  int32_t i = (int32_t)x;
  return i - (x < (float)i);
#endif
}

// Splits a coordinate along an axis of n elements into the lower neighbour and the weight of the upper one (`linear`:
// neighbours are centres half an element away from corners). With `clamp` no neighbour lies outside, unless n is 1.
SHARED int32_t warp_split(float x, int64_t n, bool linear, bool clamp, float *weight) {
  if (linear) x -= 0.5f;
  if (clamp) {
    const float last = (float)(n - 1);
    x = x > 0.0f ? x : 0.0f;
    x = x < last ? x : last;
  }
  x = warp_near(x);
  int32_t i = warp_floor(x);
  if (clamp && linear) i = i > (int32_t)n - 2 && n > 1 ? (int32_t)n - 2 : i;
  *weight = x - (float)i;
  return i;
}

// Between neighbours along x, and then along another axis. They are rounded as DALI's, which decides ties.
SHARED float warp_mix_x(float a, float b, float q) { return a * (1.0f - q) + b * q; }
SHARED float warp_mix(float a, float b, float q) { return a + (b - a) * q; }
