// SPDX-License-Identifier: Apache-2.0
// Reverses the pixels of a row. in and out must not overlap.
#pragma once
#include <cstring>

#include "core/kernel.h"

template <int kBytes>
inline void reverse_pixels_of(char *__restrict out, const char *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) __builtin_memcpy(out + (n - 1 - i) * kBytes, in + i * kBytes, kBytes);
}

typedef uint8_t ReversedBytes __attribute__((vector_size(16)));

// Reverses as many pixels at a time as fit into a vector. `order`: source of each byte.
template <int kBytes>
inline __attribute__((always_inline)) void reverse_vectors(char *__restrict out, const char *__restrict in, int64_t n,
                                                           ReversedBytes order) {
  constexpr int kPixels = 16 / kBytes, kMore = 16 - kPixels * kBytes;
  int64_t i = 0;
  // The remaining bytes of a vector are read from the next pixels, and overwritten by those written next.
  for (; kBytes * i + 16 <= kBytes * n; i += kPixels) {
    ReversedBytes x;
    __builtin_memcpy(&x, in + kBytes * i, 16);
    x = __builtin_shuffle(x, order);
    __builtin_memcpy(out + kBytes * (n - kPixels - i) - kMore, &x, 16);
  }
  reverse_pixels_of<kBytes>(out, in + kBytes * i, n - i);
}

// The compiler vectorizes these.
CLONES inline void reverse_pixels_of_1(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_pixels_of<1>(out, in, n);
}
CLONES inline void reverse_pixels_of_2(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_pixels_of<2>(out, in, n);
}
CLONES inline void reverse_pixels_of_3(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_vectors<3>(out, in, n, ReversedBytes{0, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2});
}
CLONES inline void reverse_pixels_of_4(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_vectors<4>(out, in, n, ReversedBytes{12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3});
}
CLONES inline void reverse_pixels_of_6(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_vectors<6>(out, in, n, ReversedBytes{0, 0, 0, 0, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
}
CLONES inline void reverse_pixels_of_12(char *__restrict out, const char *__restrict in, int64_t n) {
  reverse_vectors<12>(out, in, n, ReversedBytes{0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

inline void reverse_pixels(char *out, const char *in, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 1:
      return reverse_pixels_of_1(out, in, n);
    case 2:
      return reverse_pixels_of_2(out, in, n);
    case 3:
      return reverse_pixels_of_3(out, in, n);
    case 4:
      return reverse_pixels_of_4(out, in, n);
    case 6:
      return reverse_pixels_of_6(out, in, n);
    case 8:
      return reverse_pixels_of<8>(out, in, n);
    case 12:
      return reverse_pixels_of_12(out, in, n);
    case 16:
      return reverse_pixels_of<16>(out, in, n);
    default:
      for (int64_t i = 0; i < n; i++) std::memcpy(out + (n - 1 - i) * bytes, in + i * bytes, bytes);
  }
}
