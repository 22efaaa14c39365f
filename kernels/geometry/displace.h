// SPDX-License-Identifier: Apache-2.0
// Images whose pixels are read from computed positions: out(x, y) = in(place(x, y)), in coordinates where (0, 0) is the
// corner of a pixel.
#pragma once
#include "core/philox.h"
#include "geometry/sampling.h"

enum Displacement { kIdentity, kPerspective, kSphere, kWater, kJitter };

struct DisplaceArgs {
  float p[9];              // perspective: the matrix; water: amplitude, frequency, phase of x, then of y; jitter: none
  float fill[4];           // value outside of the input, per channel
  int32_t n_fill;          // 1: the same value for all channels
  int32_t range;           // jitter: steps are integers from -range to range
  int64_t extent[2];       // width, height of the image
  int64_t origin[2];       // x, y of the first pixel in the whole output
  uint64_t key, position;  // with the epoch: the random key
  uint32_t epoch;
  uint8_t kind;
  uint8_t interp;  // 0 nearest, 1 linear, 2 cubic
  uint8_t border;
  uint8_t planar;  // HW or CHW
  uint8_t still;   // pixels stay in place, whatever the kind
};

SHARED float displace_fill(const DisplaceArgs &a, int channel) {
  return a.fill[a.n_fill == 1 ? 0 : channel < 4 ? channel : 3];
}

// Random words of four consecutive pixels in memory. A word serves both coordinates.
SHARED void jitter_words(const DisplaceArgs &a, uint32_t four, uint32_t w[4]) {
  const Philox philox = {{(uint32_t)a.key, (uint32_t)(a.key >> 32)}};
  w[0] = four, w[1] = (uint32_t)a.position, w[2] = (uint32_t)(a.position >> 32), w[3] = a.epoch;
  philox.block(w);
}
SHARED float jitter_step(uint32_t half_word, int32_t range) {
  return (float)((int32_t)(half_word * (uint32_t)(2 * range + 1) >> 16) - range);
}

// Half of the longer side, in whole pixels; at least 1.
SHARED int64_t displace_radius(const DisplaceArgs &a) {
  const int64_t side = a.extent[0] > a.extent[1] ? a.extent[0] : a.extent[1];
  return side > 1 ? side / 2 : 1;
}

// Square root of a squared distance between pixels, which is 0 or at least 1/4.
SHARED float displace_length(float square) {
#ifdef __CUDA_ARCH__
  // As sqrtf, without the special cases of other numbers.
  float inverse;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(inverse) : "f"(square));
  const float near = square * inverse;
  return square > 0 ? fmaf(fmaf(-near, near, square), inverse * 0.5f, near) : 0.0f;
#else
  return sqrtf(square);
#endif
}

// Maps pixels of the output to positions in the input, without the random part.
struct Displacing {
  float p[9];
  float middle_x, middle_y, radius;
  Displacing() = default;
  SHARED explicit Displacing(const DisplaceArgs &a)
      : middle_x((float)a.extent[0] * 0.5f), middle_y((float)a.extent[1] * 0.5f), radius((float)displace_radius(a)) {
    for (int i = 0; i < 9; i++) p[i] = a.p[i];
  }
  // Shift of a row along x and of a column along y, for kWater.
  SHARED float across(float y) const { return p[0] * sinf(p[1] * y + p[2]); }
  SHARED float down(float x) const { return p[3] * cosf(p[4] * x + p[5]); }
  // Position for kSphere with the `inverse` of the radius: one Newton step makes the product the rounded quotient.
  SHARED void sphere(float x, float y, float inverse, float *u, float *v) const {
    const float dx = x + 0.5f - middle_x, dy = y + 0.5f - middle_y, length = displace_length(dx * dx + dy * dy);
    const float near = length * inverse, share = fmaf(fmaf(-near, radius, length), inverse, near);
    *u = middle_x + dx * share, *v = middle_y + dy * share;
  }
  SHARED void place(int kind, float x, float y, float *u, float *v) const {
    const float cx = x + 0.5f, cy = y + 0.5f;
    *u = cx, *v = cy;
    if (kind == kPerspective) {
      const float w = p[6] * cx + (p[7] * cy + p[8]);
      *u = (p[0] * cx + (p[1] * cy + p[2])) / w;
      *v = (p[3] * cx + (p[4] * cy + p[5])) / w;
    } else if (kind == kSphere) {
      const float dx = cx - middle_x, dy = cy - middle_y;
      const float share = sqrtf(dx * dx + dy * dy) / radius;
      *u = middle_x + dx * share, *v = middle_y + dy * share;
    } else if (kind == kWater) {
      *u = x + across(y);
      *v = y + down(x);
    }
  }
};
