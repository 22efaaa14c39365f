// SPDX-License-Identifier: Apache-2.0
// Rows of an image with their borders, in a ring as long as the window is high.
#pragma once
#include <algorithm>

#include "core/kernel.h"
#include "filter/border.h"

// Fills `left` and `right` pixels of c channels beside the w pixels at `row`.
template <class T>
inline void pad_row(T *row, int64_t w, int64_t c, int64_t left, int64_t right, int border, T fill) {
  auto copy = [&](int64_t x) {
    const int64_t from = border_place(x, w, border);
    for (int64_t i = 0; i < c; i++) row[x * c + i] = from < 0 ? fill : row[from * c + i];
  };
  for (int64_t x = 1; x <= left; x++) copy(-x);
  for (int64_t x = w; x < w + right; x++) copy(x);
}

// A window of h rows and w columns; element (y, x) is the anchor.
struct Window {
  int64_t h, w, y, x;
};

// `To`: type of the elements in the ring. `slack`: readable elements after a row.
template <class To>
class RowRing {
 public:
  RowRing(const Grid &g, const Window &window, int border, To fill, int64_t slack, Scratch &scratch, int part)
      : g_(g), window_(window), border_(border), fill_(fill), next_(-window.y) {
    stride_ = (g.w + window.w - 1) * g.c + slack;
    rows_ = scratch.array<To>(window.h * stride_, part);
  }
  // Loads the rows under the window of output row y; y must increase. convert(to, row) writes a row of the image.
  // Afterwards at(y, i, j) is element (i, j) of the window of the row's first output.
  template <class F>
  void advance(int64_t y, const F &convert) {
    for (; next_ <= y - window_.y + window_.h - 1; next_++) {
      To *ring = rows_ + (next_ + window_.y) % window_.h * stride_, *row = ring + window_.x * g_.c;
      const int64_t from = border_place(next_, g_.h, border_);
      if (from < 0) {
        std::fill_n(ring, stride_, fill_);
        continue;
      }
      convert(row, from);
      pad_row(row, g_.w, g_.c, window_.x, window_.w - 1 - window_.x, border_, fill_);
      std::fill_n(ring + (g_.w + window_.w - 1) * g_.c, stride_ - (g_.w + window_.w - 1) * g_.c, fill_);
    }
  }
  const To *at(int64_t y, int64_t i, int64_t j) const { return rows_ + (y + i) % window_.h * stride_ + j * g_.c; }

 private:
  const Grid &g_;
  Window window_;
  int border_;
  To fill_, *rows_;
  int64_t stride_, next_;
};
