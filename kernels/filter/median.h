// SPDX-License-Identifier: Apache-2.0
// The median of the elements under a window; the border is repeated.
#pragma once
#include "core/tensor.h"
#include "filter/border.h"

struct MedianArgs {
  int32_t size[2];  // of the window along H and W, odd
  int32_t n_outer;  // axes before H
};

#ifdef __CUDACC__
#define MEDIAN_INLINE __device__ __forceinline__
#define MEDIAN_UNROLL _Pragma("unroll")
#else
#define MEDIAN_UNROLL _Pragma("GCC unroll 16")
#define MEDIAN_INLINE inline __attribute__((always_inline))
#endif

// Orders two values, or two vectors lane by lane.
template <class V>
MEDIAN_INLINE void order(V &a, V &b) {
  const V low = a < b ? a : b;
  b = a < b ? b : a;
  a = low;
}

#ifdef __CUDACC__
// One instruction each; integers get them from the generic version.
template <>
MEDIAN_INLINE void order(float &a, float &b) {
  const float low = fminf(a, b);
  b = fmaxf(a, b);
  a = low;
}
#endif

// Moves the smallest of M values to the front and the largest to the end.
template <int M, class V>
MEDIAN_INLINE void extremes(V *v) {
  MEDIAN_UNROLL
  for (int i = 0; i < M / 2; i++) order(v[i], v[M - 1 - i]);
  MEDIAN_UNROLL
  for (int i = 1; i < (M + 1) / 2; i++) order(v[0], v[i]);
  MEDIAN_UNROLL
  for (int i = M / 2; i < M - 1; i++) order(v[i], v[M - 1]);
}

// Puts the median of N values (N odd, above 1) into v[1]. v holds the first kHeld<N> values; next(x) gives the others.
// The smallest and the largest of the held values cannot be the median, so the next value replaces both.
template <int N>
constexpr int kHeld = N / 2 + 2;

template <int M, class V, class Next>
MEDIAN_INLINE void forget_extremes(V *v, const Next &next) {
  extremes<M>(v);
  if constexpr (M > 3) {
    next(v[0]);
    forget_extremes<M - 1>(v, next);
  }
}

// Maps the bits of floats to integers of the same order, and back.
SHARED uint32_t float_key(uint32_t bits) { return bits >> 31 ? ~bits : bits | 0x80000000u; }
SHARED uint32_t key_float(uint32_t key) { return key >> 31 ? key & 0x7fffffffu : ~key; }
