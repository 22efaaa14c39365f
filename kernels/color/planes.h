// SPDX-License-Identifier: Apache-2.0
// Splits three interleaved channels into planes and back, a block of pixels at a time: arithmetic between channels
// becomes arithmetic between arrays, which compilers vectorize.
#pragma once
#include "core/tensor.h"

constexpr int kPlane = 256;  // pixels per block; all planes of a block fit in the L1 cache

template <class T>
struct Planes {
  alignas(64) T a[kPlane], b[kPlane], c[kPlane];

  template <class In>
  inline __attribute__((always_inline)) void load(const In *__restrict in, int n) {
    for (int i = 0; i < n; i++) a[i] = (T)in[3 * i], b[i] = (T)in[3 * i + 1], c[i] = (T)in[3 * i + 2];
  }
  inline __attribute__((always_inline)) void store(T *__restrict out, int n) const {
    for (int i = 0; i < n; i++) out[3 * i] = a[i], out[3 * i + 1] = b[i], out[3 * i + 2] = c[i];
  }
};

// Calls f(first pixel, number of pixels) for each block. Whole blocks have a constant number, which unrolls better.
template <class F>
inline __attribute__((always_inline)) void for_blocks(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kPlane <= n; i += kPlane) f(i, kPlane);
  if (i < n) f(i, (int)(n - i));
}
