// SPDX-License-Identifier: Apache-2.0
// The loop of half_chroma.h, with the vectors of an instruction set. Before it is included, VECTOR is defined (the
// attributes of functions to be inlined) and `struct V`: its type Bytes, kBytes of them, and its instructions.
#pragma once
#include <algorithm>

#include "video/half_chroma.h"

namespace {

constexpr int64_t kStep = V::kBytes, kSamples = kStep / 2;
constexpr int64_t kBlock = 1024;  // pixels whose chroma stays in the first-level cache

// Interpolates n samples between two rows: half of their 15 bits. The last step overlaps the one before.
VECTOR void between_rows(const ChromaRows &rows, int64_t n, int far_weight, int16_t *out) {
  const int near = (4 - far_weight) * 16, far = far_weight * 16;
  const V::Bytes weights = V::words(near | far << 8), middle = V::words(0x8080);
  for (int64_t i = 0, last = n - kSamples;; i += kSamples) {
    if (i > last) i = last;
    const V::Bytes both = V::pairs(rows.near + i, rows.far + i);
    V::store(out + i, V::sums_of_products(weights, V::flip(both, middle)));
    if (i == last) return;
  }
}

// 16-bit values of pixels. Even and odd ones need not be put in order before they are bytes.
struct Pixels {
  V::Bytes even, odd;
};

VECTOR Pixels times(const Pixels &x, V::Bytes factor) { return {V::times(x.even, factor), V::times(x.odd, factor)}; }
VECTOR Pixels sum(const Pixels &x, const Pixels &y) { return {V::sum(x.even, y.even), V::sum(x.odd, y.odd)}; }

// A sample for each even pixel, the mean of two for each odd one.
VECTOR Pixels spread(const int16_t *p) {
  const V::Bytes here = V::load(p);
  return {V::sum(here, here), V::sum(here, V::load(p + 1))};
}

// Bytes, as packing leaves them. A product with 2^10 rounds five fraction bits off.
VECTOR V::Bytes packed(const Pixels &x) {
  const Pixels whole = times(x, V::words(1 << 10));
  return V::pack(whole.even, whole.odd);
}

// Luma is negative, as bytes can be multiplied by -2^7 but not by 2^7, and so is its factor.
struct Factors {
  V::Bytes y, rv, gu, gv, bu, black;
};

struct Converted {
  V::Bytes r, g, b;
};

VECTOR Converted convert(const uint8_t *luma, const int16_t *u_row, const int16_t *v_row, const Factors &k) {
  const Pixels u = spread(u_row), v = spread(v_row);
  const V::Bytes l = V::load(luma);
  const Pixels minus = {V::sums_of_products(l, V::words(0x0080)), V::sums_of_products(l, V::words(0x8000))};
  const Pixels y = times(sum(minus, {k.black, k.black}), k.y);
  return {packed(sum(y, times(v, k.rv))), packed(sum(sum(y, times(u, k.gu)), times(v, k.gv))),
          packed(sum(y, times(u, k.bu)))};
}

VECTOR void put(uint8_t *out, int64_t i, const Converted &x) { V::store_interleaved(x.r, x.g, x.b, out + 3 * i); }
VECTOR void put(const Planes &out, int64_t i, const Converted &x) {
  V::store(out.r + i, V::in_order(x.r)), V::store(out.g + i, V::in_order(x.g)), V::store(out.b + i, V::in_order(x.b));
}

// `out`: pixels or Planes. The last block, and the last step of a block, overlap what is before them.
template <class Out>
VECTOR void to_rgb(const HalfChromaRow row, const ycbcr::Coefficients &c, const Out out) {
  const Factors k = {V::words(-c.y), V::words(c.rv), V::words(c.gu),
                     V::words(c.gv), V::words(c.bu), V::words(c.black << 7)};
  int16_t u[kBlock / 2 + 1], v[kBlock / 2 + 1];
  for (int64_t done = 0; done < row.n;) {
    const int64_t first = std::min(done, row.n - kStep), n = std::min(kBlock, row.n - first);
    const int64_t sample = first / 2, samples = std::min(n / 2 + 1, row.n_chroma - sample);
    between_rows({row.u.near + sample, row.u.far + sample}, samples, row.far_weight, u);
    between_rows({row.v.near + sample, row.v.far + sample}, samples, row.far_weight, v);
    if (samples == n / 2) u[n / 2] = u[n / 2 - 1], v[n / 2] = v[n / 2 - 1];  // at the picture's edge
    for (int64_t i = 0, last = n - kStep;; i += kStep) {
      if (i > last) i = last;
      __builtin_prefetch(row.next_luma + first + i);
      put(out, first + i, convert(row.luma + first + i, u + (i >> 1), v + (i >> 1), k));
      if (i == last) break;
    }
    done = first + n;
  }
}

}  // namespace
