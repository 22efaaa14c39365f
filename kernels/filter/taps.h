// SPDX-License-Identifier: Apache-2.0
// Sums of weighted rows in float32, from which all linear filters are made: along a row the taps are the same row,
// shifted by whole pixels.
#pragma once
#include <algorithm>

#include "core/kernel.h"
#include "filter/border.h"

constexpr int kMostTaps = 8;  // summed in registers at once

template <int N>
CLONES static void add_taps(float *__restrict to, const float *const *from, const float *weights, int64_t n,
                            bool begins) {
  const float *x[N];
  float w[N];
  for (int k = 0; k < N; k++) x[k] = from[k], w[k] = weights[k];
  if (begins) {
    for (int64_t i = 0; i < n; i++) {
      float sum = w[0] * x[0][i];
      for (int k = 1; k < N; k++) sum += w[k] * x[k][i];
      to[i] = sum;
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      float sum = to[i];
      for (int k = 0; k < N; k++) sum += w[k] * x[k][i];
      to[i] = sum;
    }
  }
}

// Adds rows one after the other to a sum of n elements.
class RowSum {
 public:
  RowSum(float *to, int64_t n) : to_(to), n_(n) {}
  void add(const float *row, float weight) {
    rows_[held_] = row, weights_[held_++] = weight;
    if (held_ == kMostTaps) flush();
  }
  void finish() {
    if (held_) flush();
    if (begins_) std::fill_n(to_, n_, 0.0f);
  }

 private:
  void flush() {
    switch (held_) {
#define TAPS(N)                                     \
  case N:                                           \
    add_taps<N>(to_, rows_, weights_, n_, begins_); \
    break;
      TAPS(1) TAPS(2) TAPS(3) TAPS(4) TAPS(5) TAPS(6) TAPS(7) TAPS(8)
#undef TAPS
    }
    held_ = 0, begins_ = false;
  }
  float *to_;
  int64_t n_;
  const float *rows_[kMostTaps];
  float weights_[kMostTaps];
  int held_ = 0;
  bool begins_ = true;
};

template <class T>
CLONES static void to_floats(float *__restrict to, const T *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

template <class T>
CLONES static void from_floats(T *__restrict to, const float *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = saturate<T>(from[i]);
}

// Fills `left` and `right` pixels of c channels beside the w pixels at `row`.
inline void pad_row(float *row, int64_t w, int64_t c, int64_t left, int64_t right, int border, float fill) {
  auto copy = [&](int64_t x) {
    const int64_t from = border_place(x, w, border);
    for (int64_t i = 0; i < c; i++) row[x * c + i] = from < 0 ? fill : row[from * c + i];
  };
  for (int64_t x = 1; x <= left; x++) copy(-x);
  for (int64_t x = w; x < w + right; x++) copy(x);
}
