// SPDX-License-Identifier: Apache-2.0
// Pixels of a row from the last one to the first. in and out must not overlap.
#pragma once
#include <cstring>

#include "core/kernel.h"

template <int kBytes>
inline void reverse_pixels_of(char *__restrict out, const char *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) __builtin_memcpy(out + (n - 1 - i) * kBytes, in + i * kBytes, kBytes);
}

// Five pixels of three bytes at a time, moved about within a vector.
CLONES inline void reverse_pixels_of_3(char *__restrict out, const char *__restrict in, int64_t n) {
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  const Bytes order = {0, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2};
  int64_t i = 0;
  // A vector has one byte more than five pixels: it comes from the next pixel, and goes to the place of the pixel
  // written next.
  for (; i + 6 <= n; i += 5) {
    Bytes five;
    __builtin_memcpy(&five, in + 3 * i, 16);
    five = __builtin_shuffle(five, order);
    __builtin_memcpy(out + 3 * (n - 5 - i) - 1, &five, 16);
  }
  reverse_pixels_of<3>(out, in + 3 * i, n - i);
}

inline void reverse_pixels(char *out, const char *in, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 1:
      return reverse_pixels_of<1>(out, in, n);
    case 2:
      return reverse_pixels_of<2>(out, in, n);
    case 3:
      return reverse_pixels_of_3(out, in, n);
    case 4:
      return reverse_pixels_of<4>(out, in, n);
    case 6:
      return reverse_pixels_of<6>(out, in, n);
    case 8:
      return reverse_pixels_of<8>(out, in, n);
    case 12:
      return reverse_pixels_of<12>(out, in, n);
    case 16:
      return reverse_pixels_of<16>(out, in, n);
    default:
      for (int64_t i = 0; i < n; i++) std::memcpy(out + (n - 1 - i) * bytes, in + i * bytes, bytes);
  }
}
