// SPDX-License-Identifier: Apache-2.0
#include "filter/morphology.h"

#include <cstring>

#include "filter/rows.h"

// to = element-wise better of two rows; the second may be the first one, shifted.
template <bool DILATES, class T>
CLONES static void pick(T *to, const T *a, const T *b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) to[i] = better<DILATES>(a[i], b[i]);
}

template <bool DILATES, class T>
CLONES static void pick(T *to, const T *a, const T *b, const T *c, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) to[i] = better<DILATES>(better<DILATES>(a[i], b[i]), c[i]);
}

// The best of `size` neighbours, `step` elements apart, for n elements. Overwrites `row`.
template <bool DILATES, class T>
static void pick_along(T *to, T *row, int64_t n, int64_t step, int64_t size) {
  // The row holds the best of `have` neighbours each; two such runs that overlap cover `size`.
  int64_t have = 1;
  for (; 2 * have < size; have *= 2) pick<DILATES>(row, row, row + have * step, n + (size - 2 * have) * step);
  pick<DILATES>(to, row, row + (size - have) * step, n);
}

template <bool DILATES, class T>
static void pass(T *out, const T *in, const Grid &g, const MorphologyArgs &a, Scratch &scratch) {
  const int64_t n = g.row(), height = a.size[0], width = a.size[1];
  const T outside = worst<T>(DILATES);
  // A ring of rows that were filtered along W. The borders beside them are not used.
  RowRing<T> ring(g, Window{height, 1, a.anchor[0], 0}, a.border, outside, 0, scratch, 0);
  T *whole = scratch.array<T>(n + (width - 1) * g.c, 1), *begin = whole + a.anchor[1] * g.c;
  for (int64_t y = 0; y < g.h; y++) {
    ring.advance(y, [&](T *to, int64_t row) {
      memcpy(begin, in + row * n, n * sizeof(T));
      pad_row(begin, g.w, g.c, a.anchor[1], width - 1 - a.anchor[1], a.border, outside);
      pick_along<DILATES>(to, whole, n, g.c, width);
    });
    T *to = out + y * n;
    int64_t k = 1;
    if (height == 1)
      memcpy(to, ring.at(y, 0, 0), n * sizeof(T));
    else if (height % 2 == 0)
      pick<DILATES>(to, ring.at(y, 0, 0), ring.at(y, 1, 0), n), k = 2;
    else
      pick<DILATES>(to, ring.at(y, 0, 0), ring.at(y, 1, 0), ring.at(y, 2, 0), n), k = 3;
    for (; k < height; k += 2) pick<DILATES>(to, to, ring.at(y, k, 0), ring.at(y, k + 1, 0), n);
  }
}

template <bool DILATES, class T>
static void repeat(T *out, const T *in, const Grid &g, const MorphologyArgs &a, Scratch &scratch) {
  T *between = a.iterations > 1 ? scratch.array<T>(2 * g.slice(), 2) : nullptr;
  for (int i = 0; i < a.iterations; i++) {
    T *to = i == a.iterations - 1 ? out : between + i % 2 * g.slice();
    pass<DILATES>(to, in, g, a, scratch);
    in = to;
  }
}

static void run(const Tensor *out, const Tensor *in, const MorphologyArgs &a, Scratch &scratch) {
  const Grid g(*in, a.n_outer, 2);
  if (in->volume() == 0) return;
  for_types<uint8_t, uint16_t, float>(in->dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t p = 0; p < g.outer; p++) {
      T *to = out->as<T>() + p * g.slice();
      const T *from = in->as<T>() + p * g.slice();
      a.dilates ? repeat<true>(to, from, g, a, scratch) : repeat<false>(to, from, g, a, scratch);
    }
  });
}

EXPORT_KERNEL(morphology, MorphologyArgs, run)
