// SPDX-License-Identifier: Apache-2.0
// Sums of weighted rows in float32, from which all linear filters are made: along a row the taps are the same row,
// shifted by whole pixels.
#pragma once
#include "filter/rows.h"

constexpr int kMostTaps = 9;  // summed in registers at once

// to = (begins ? 0 : before) + the sum of N weighted rows. `to` may be `before`.
template <int N, class Out>
CLONES static void add_taps(Out *to, const float *before, const float *const *from, const float *weights, int64_t n,
                            bool begins) {
  const float *x[N];
  float w[N];
  for (int k = 0; k < N; k++) x[k] = from[k], w[k] = weights[k];
  if (begins) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      float sum = w[0] * x[0][i];
      for (int k = 1; k < N; k++) sum += w[k] * x[k][i];
      to[i] = saturate<Out>(sum);
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      float sum = before[i];
      for (int k = 0; k < N; k++) sum += w[k] * x[k][i];
      to[i] = saturate<Out>(sum);
    }
  }
}

template <class T>
CLONES static void to_floats(float *__restrict to, const T *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

template <class T>
CLONES static void from_floats(T *__restrict to, const float *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = saturate<T>(from[i]);
}

// Adds rows one after the other to a sum of n elements, for which `memory` has room.
class RowSum {
 public:
  RowSum(float *memory, int64_t n) : sum_(memory), n_(n) {}
  void add(const float *row, float weight) {
    if (held_ == kMostTaps) flush(sum_);
    rows_[held_] = row, weights_[held_++] = weight;
  }
  template <class Out>
  void finish(Out *to) {
    if constexpr (DTypeOf<Out>::value == UINT8 || DTypeOf<Out>::value == FLOAT) {
      flush(to);
    } else {  // few want them: not worth the time to compile them
      flush(sum_);
      from_floats(to, sum_, n_);
    }
  }

 private:
  template <class Out>
  void flush(Out *to) {
    switch (held_) {
#define TAPS(N)                                          \
  case N:                                                \
    add_taps<N>(to, sum_, rows_, weights_, n_, begins_); \
    break;
      TAPS(1) TAPS(2) TAPS(3) TAPS(4) TAPS(5) TAPS(6) TAPS(7) TAPS(8) TAPS(9)
#undef TAPS
    }
    held_ = 0, begins_ = false;
  }
  float *sum_;
  int64_t n_;
  const float *rows_[kMostTaps];
  float weights_[kMostTaps];
  int held_ = 0;
  bool begins_ = true;
};
