// SPDX-License-Identifier: Apache-2.0
// Demosaicing by a variable number of gradients (Chang, Cheung and Pang, 1999) with OpenCV's integer arithmetic: of the
// eight directions from an element, those with small gradients determine how the other colours differ from its own.
#pragma once
#include "color/debayer.h"

// Smaller images use bilinear interpolation, as in OpenCV.
constexpr int32_t kVngSmallest = 8;
// OpenCV's factor for 1/14 in columns that its vectors of eight elements don't cover; it changes how ties round.
constexpr float kSeventh = 0.0714286f;

struct VngColors {
  int16_t a, b;  // at green elements: colours of the row's and of the column's other elements; else: green and the
                 // third colour
};

// Whether OpenCV's vectors cover column x. `first`: the row's first element that is not green, where they begin.
SHARED bool in_vectors(int32_t x, int32_t width, int32_t first) {
  return x >= first && x < first + (width - first) / 8 * 8;
}

// Rounds half to even. Requires |x| < 2^22.
SHARED __attribute__((always_inline)) int32_t vng_round(float x) {
  const float shift = 12582912.f;  // 1.5 * 2^23: floats of this size have a spacing of 1
  const float y = (x + shift) - shift;
  return (int32_t)y;
}

// All sums fit into 16 bits, which allow more lanes per vector.
SHARED __attribute__((always_inline)) int16_t vng_distance(int16_t a, int16_t b) {
  return (int16_t)(a < b ? b - a : a - b);
}

// The gradient of a direction, and means of colours along it: the element's own, a and b. All are doubled.
struct VngDirection {
  int16_t gradient, own, a, b;
};

// Up, down, left or right by (dy, dx). at(y, x): the element at that offset.
template <bool kGreen, int dy, int dx, class At>
SHARED __attribute__((always_inline)) VngDirection vng_straight(const At &at) {
  constexpr int sy = dx ? 1 : 0, sx = dy ? 1 : 0;  // one step to the side
  VngDirection d;
  d.gradient = 2 * (vng_distance(at(dy, dx), at(-dy, -dx)) + vng_distance(at(2 * dy, 2 * dx), at(0, 0))) +
               vng_distance(at(dy + sy, dx + sx), at(sy - dy, sx - dx)) +
               vng_distance(at(dy - sy, dx - sx), at(-sy - dy, -sx - dx)) +
               vng_distance(at(2 * dy + sy, 2 * dx + sx), at(sy, sx)) +
               vng_distance(at(2 * dy - sy, 2 * dx - sx), at(-sy, -sx));
  d.own = at(2 * dy, 2 * dx) + at(0, 0);
  const int16_t next = 2 * at(dy, dx);
  if (!kGreen) {
    d.a = next, d.b = at(dy + sy, dx + sx) + at(dy - sy, dx - sx);
  } else {
    const int16_t far = at(2 * dy + sy, 2 * dx + sx) + at(2 * dy - sy, 2 * dx - sx);
    d.a = dx ? next : far, d.b = dx ? far : next;
  }
  return d;
}

template <bool kGreen, int dy, int dx, class At>
SHARED __attribute__((always_inline)) VngDirection vng_diagonal(const At &at) {
  VngDirection d;
  d.gradient = 2 * (vng_distance(at(dy, dx), at(-dy, -dx)) + vng_distance(at(2 * dy, 2 * dx), at(0, 0)));
  if (!kGreen) {
    d.gradient += vng_distance(at(dy, 0), at(0, -dx)) + vng_distance(at(0, dx), at(-dy, 0)) +
                  vng_distance(at(2 * dy, dx), at(dy, 0)) + vng_distance(at(dy, 2 * dx), at(0, dx));
    d.own = at(2 * dy, 2 * dx) + at(0, 0);
    d.a = (at(2 * dy, dx) + at(dy, 0) + at(dy, 2 * dx) + at(0, dx)) >> 1, d.b = 2 * at(dy, dx);
  } else {
    d.gradient += 2 * (vng_distance(at(2 * dy, dx), at(0, -dx)) + vng_distance(at(dy, 2 * dx), at(-dy, 0)));
    d.own = 2 * at(dy, dx), d.a = at(2 * dy, dx) + at(0, dx), d.b = at(dy, 0) + at(dy, 2 * dx);
  }
  return d;
}

// `all`: the eight directions. Loops would prevent vectorization.
template <class... Directions>
SHARED __attribute__((always_inline)) VngColors vng_mean(int16_t v, float seventh, const Directions &...all) {
  int16_t least = 0x7fff, most = 0;
  ((least = all.gradient < least ? all.gradient : least, most = all.gradient > most ? all.gradient : most), ...);
  const int16_t half = (int16_t)(most >> 1), limit = (int16_t)(least + (half < 1 ? 1 : half));
  int16_t n = 0, own = 0, a = 0, b = 0;
  const auto add = [&](const VngDirection &d) __attribute__((always_inline)) {
    const int16_t counts = d.gradient < limit ? -1 : 0;
    n -= counts, own += d.own & counts, a += d.a & counts, b += d.b & counts;
  };
  (add(all), ...);
  const float scale = n == 7 ? seventh : 1.f / (float)(2 * n);
  a = (int16_t)(v + vng_round((float)(int16_t)(a - own) * scale));
  b = (int16_t)(v + vng_round((float)(int16_t)(b - own) * scale));
  VngColors out;
  out.a = a < 0 ? 0 : a > 255 ? 255 : a, out.b = b < 0 ? 0 : b > 255 ? 255 : b;
  return out;
}

template <bool kGreen, class At>
SHARED __attribute__((always_inline)) VngColors vng(const At &at, float seventh) {
  return vng_mean(at(0, 0), seventh, vng_straight<kGreen, -1, 0>(at), vng_straight<kGreen, 1, 0>(at),
                  vng_straight<kGreen, 0, -1>(at), vng_straight<kGreen, 0, 1>(at), vng_diagonal<kGreen, -1, -1>(at),
                  vng_diagonal<kGreen, -1, 1>(at), vng_diagonal<kGreen, 1, -1>(at), vng_diagonal<kGreen, 1, 1>(at));
}
