// SPDX-License-Identifier: Apache-2.0
// Affine transformations of images and volumes: out(p) = in(matrix * p), in coordinates where (0, 0) is the corner of a
// pixel.
#pragma once
#include "core/convert.h"

struct WarpArgs {
  float matrix[12];   // rows x, y(, z) of `dims` + 1 values each
  float fill;         // value outside of the input
  uint8_t clamp;      // repeat the border instead of using `fill`
  uint8_t linear;     // linear interpolation; else nearest neighbour
  uint8_t dims;       // 2: ...HWC, 3: ...DHWC
  uint8_t add_steps;  // CPU: add a step to the previous coordinate, as DALI does; else compute each as on the GPU
  int64_t origin[3];  // x, y(, z) of the first element in the whole output
};

// Input coordinate along one axis for element x of a row of the output. `rest`: see warp_rest.
SHARED float warp_coordinate(float step, int32_t x, float rest) { return step * ((float)x + 0.5f) + rest; }

// Share of an input coordinate that depends on the other axes of the output. `row` is a row of the matrix.
SHARED float warp_rest(const float *row, int dims, float y, float z) {
  return dims == 2 ? row[1] * (y + 0.5f) + row[2] : row[1] * (y + 0.5f) + (row[2] * (z + 0.5f) + row[3]);
}

// x clamped to [-1e9, 1e9], which is far outside of any input. NaN becomes -1e9.
SHARED float warp_near(float x) {
  x = x > -1e9f ? x : -1e9f;
  return x < 1e9f ? x : 1e9f;
}

// floor(x). Requires a result of `warp_near`.
SHARED int32_t warp_floor(float x) {
#ifdef __CUDA_ARCH__
  return __float2int_rd(x);
#else
  int32_t i = (int32_t)x;
  return i - (x < (float)i);
#endif
}

// Splits a coordinate along an axis of n elements into the lower neighbour and the weight of the upper one. `linear`:
// neighbours are the centres of elements, half an element from corners. `clamp`: no neighbour is outside, unless n is
// 1.
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

// Linear interpolation along x, and then along another axis. Rounded as in DALI, which decides ties.
SHARED float warp_mix_x(float a, float b, float q) { return a * (1.0f - q) + b * q; }
SHARED float warp_mix(float a, float b, float q) { return a + (b - a) * q; }
