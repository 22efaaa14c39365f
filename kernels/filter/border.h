// SPDX-License-Identifier: Apache-2.0
// Border modes, and the layout of images and volumes in filters.
#pragma once
#include "core/tensor.h"

enum : int32_t { REFLECT_101, REFLECT_1001, WRAP, CLAMP, CONSTANT };  // dcb|abcd|cba, cba|abcd|dcb, bcd|abcd|abc

// Index of the element that stands for i on an axis of n elements (at least 1). i may be outside; then -1 for CONSTANT.
template <class Int>
SHARED Int border_place_of(Int i, Int n, int border) {
  if (i >= 0 && i < n) return i;
  if (border == CONSTANT) return -1;
  if (border == CLAMP) return i < 0 ? 0 : n - 1;
  const Int period = border == WRAP ? n : border == REFLECT_1001 ? 2 * n : n > 1 ? 2 * n - 2 : 1;
  i += i < 0 ? period : i >= period ? -period : 0;  // enough near an axis, and much faster than a division
  if (i < 0 || i >= period) {
    i %= period;
    if (i < 0) i += period;
  }
  if (i < n) return i;
  return border == REFLECT_101 ? period - i : period - 1 - i;
}
SHARED int64_t border_place(int64_t i, int64_t n, int border) { return border_place_of<int64_t>(i, n, border); }

// `outer` images or volumes in sequence, each of d slices, h rows, w columns and c channels.
struct Grid {
  int64_t outer, d, h, w, c;
  Grid() = default;
  // The first n_outer axes count images; the next n_space axes are spatial; the others are channels.
  SHARED Grid(const Tensor &x, int n_outer, int n_space) {
    int64_t space[3] = {1, 1, 1};
    outer = c = 1;
    for (int i = 0; i < x.ndim; i++) {
      if (i < n_outer)
        outer *= x.shape[i];
      else if (i < n_outer + n_space)
        space[3 - n_space + i - n_outer] = x.shape[i];
      else
        c *= x.shape[i];
    }
    d = space[0], h = space[1], w = space[2];
  }
  SHARED int64_t row() const { return w * c; }
  SHARED int64_t slice() const { return h * w * c; }
  SHARED int64_t image() const { return d * h * w * c; }
};
