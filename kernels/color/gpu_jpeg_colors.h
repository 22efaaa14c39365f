// SPDX-License-Identifier: Apache-2.0
// Colour conversion of pixels packed in words, with the formulas of color/jpeg_compression.h and decode/jpeg_pixels.h.
#pragma once
#include "color/jpeg_compression.h"
#include "core/gpu_dots.h"
#include "decode/inverse_dct.h"

// Unpacks 8 pixels of 3 bytes, each to a word: red, green, blue, red.
DEVICE void jpeg_spread(uint32_t (&p)[8], const uint32_t (&words)[6]) {
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const int word = 3 * k / 4, at = 3 * k % 4;
    const uint32_t next = words[word < 5 ? word + 1 : 5];
    p[k] = __byte_perm(words[word], next, at | (at + 1) << 4 | (at + 2) << 8 | at << 12);
  }
}

// Byte K of each of four words.
template <int K>
DEVICE uint32_t jpeg_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  constexpr uint32_t two = K | (K + 4) << 4;
  return __byte_perm(__byte_perm(a, b, two), __byte_perm(c, d, two), 0x5410);
}

// Luma of 8 pixels, as by jpeg_luma.
DEVICE uint2 jpeg_luma_of(const uint32_t (&p)[8]) {
  uint32_t y[8];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    y[k] = dot_unsigned_halves<false>(38470u << 16 | 19595, p[k], 1 << 15);
    y[k] = dot_unsigned_halves<true>(7471, p[k], y[k]);
  }
  return make_uint2(jpeg_bytes<2>(y[0], y[1], y[2], y[3]), jpeg_bytes<2>(y[4], y[5], y[6], y[7]));
}

// 4 chroma samples at half resolution: means over 2 x 2 pixels of jpeg_blue (RED: jpeg_red), rounded down and up
// alternately.
template <bool RED>
DEVICE uint32_t jpeg_chroma_of(const uint32_t (&above)[8], const uint32_t (&below)[8]) {
  const auto chroma = [](uint32_t p) {
    if constexpr (RED)  // 32768 does not fit into 16 signed bits: red is multiplied by 16384 twice
      return (uint32_t)dot_halves<true>(halves(-5329, 16384), p,
                                        dot_halves<false>(halves(16384, -27439), p, kJpegChroma));
    else
      return dot_unsigned_halves<true>(32768, p, dot_halves<false>(halves(-11059, -21709), p, kJpegChroma));
  };
  uint32_t mean[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t four =
        jpeg_bytes<2>(chroma(above[2 * k]), chroma(above[2 * k + 1]), chroma(below[2 * k]), chroma(below[2 * k + 1]));
    mean[k] = dot_bytes(four, 0x40404040, 64 * (1 + k % 2));  // times 64: byte 1 is the mean
  }
  return jpeg_bytes<1>(mean[0], mean[1], mean[2], mean[3]);
}

// Packs four integers, saturated to bytes, the first one lowest.
DEVICE uint32_t jpeg_word(int32_t a, int32_t b, int32_t c, int32_t d) {
#ifdef __CUDA_ARCH__
  uint32_t high, word;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(b), "r"(a), "r"(high));
  return word;
#else
  return (uint32_t)dct_sample(a - 128) | (uint32_t)dct_sample(b - 128) << 8 | (uint32_t)dct_sample(c - 128) << 16 |
         (uint32_t)dct_sample(d - 128) << 24;
#endif
}
