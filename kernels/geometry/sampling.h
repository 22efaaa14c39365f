// SPDX-License-Identifier: Apache-2.0
// Borders and filters for sampling images.
#pragma once
#include "geometry/warp.h"

enum SampledBorder { kBorderConstant, kBorderReplicate, kBorderReflect, kBorderReflect101, kBorderWrap };

// Index in [0, n) that stands for i, any integer, along an axis of n > 0 elements; not for kBorderConstant.
SHARED int32_t border_index(int32_t i, int32_t n, int border) {
  if (i >= 0 && i < n) return i;
  if (border == kBorderReplicate || n == 1) return i < 0 ? 0 : n - 1;
  const int32_t period = border == kBorderWrap ? n : border == kBorderReflect ? 2 * n : 2 * n - 2;
  i %= period;
  i = i < 0 ? i + period : i;
  return i < n ? i : border == kBorderReflect ? period - 1 - i : period - i;
}

// Weights of the neighbours -1, 0, 1, 2 for a position q between 0 and 1 (Keys 1981, a = -0.75).
SHARED void cubic_weights(float q, float *w) {
  const float a = -0.75f;
  const float p = q + 1.0f, r = 1.0f - q;
  w[0] = ((a * p - 5 * a) * p + 8 * a) * p - 4 * a;
  w[1] = ((a + 2) * q - (a + 3)) * q * q + 1;
  w[2] = ((a + 2) * r - (a + 3)) * r * r + 1;
  w[3] = 1.0f - w[0] - w[1] - w[2];
}

// Weights of the same neighbours for the cubic through them (Lagrange 1795), which is not smooth at the pixels.
SHARED void lagrange_weights(float q, float *w) {
  const float p = q + 1.0f, r = q - 1.0f, s = q - 2.0f;
  w[0] = q * r * s * (-1.0f / 6);
  w[1] = p * r * s * 0.5f;
  w[2] = p * q * s * -0.5f;
  w[3] = p * q * r * (1.0f / 6);
}

// Weights of the neighbours -2 .. 3: a windowed sinc (Lanczos, a = 3), normalized to the sum 1.
SHARED void lanczos_weights(float q, float *w) {
  const float pi = 3.14159265358979f;
  float sum = 0;
#ifdef __CUDACC__
#pragma unroll 1  // sinf is long
#endif
  for (int i = 0; i < 6; i++) {
    const float t = (q + (float)(2 - i)) * pi, square = t * t;
    w[i] = t > -1e-4f && t < 1e-4f ? 1.0f : 3.0f * sinf(t) * sinf(t / 3.0f) / square;
    sum += w[i];
  }
  for (int i = 0; i < 6; i++) w[i] /= sum;
}

// Interpolation methods.
enum Interpolation { kNearest, kLinear, kCubic, kLanczos3, kLagrange };

// Number of neighbours along an axis and their weights.
template <int INTERP>
struct Taps {
  static constexpr int kCount = INTERP == kLanczos3 ? 6 : 4;
  static SHARED void weights(float q, float *w) {
    INTERP == kCubic ? cubic_weights(q, w) : INTERP == kLanczos3 ? lanczos_weights(q, w) : lagrange_weights(q, w);
  }
};
