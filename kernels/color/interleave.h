// SPDX-License-Identifier: Apache-2.0
// Three planes become pixels: a b c a b c ...
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// n pixels of three planes, interleaved.
void interleave(const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n, uint8_t *out);
void interleave(const uint16_t *a, const uint16_t *b, const uint16_t *c, int64_t n, uint16_t *out);

#if defined(__x86_64__)
// For elements of `Size` bytes, 16 / Size of which make a group of 16 bytes.
template <int Size>
struct Interleaving {
  alignas(16) int8_t order[3][16];    // source of each byte of a group, modulo 16: a permutation per plane
  alignas(16) int8_t mask[3][3][16];  // which bytes of the three output groups belong to a plane
  constexpr Interleaving() : order(), mask() {
    constexpr int n = 16 / Size;
    for (int plane = 0; plane < 3; plane++) {
      for (int i = 0; i < n; i++)  // element i belongs at element 3 i + plane
        for (int b = 0; b < Size; b++) order[plane][(3 * i + plane) % n * Size + b] = (int8_t)(i * Size + b);
      for (int i = 0; i < 48; i++) mask[plane][i / 16][i % 16] = i / Size % 3 == plane ? -1 : 0;
    }
  }
};
template <int Size>
inline constexpr Interleaving<Size> kInterleaving;

__attribute__((target("avx2"), always_inline)) inline __m256i load_twice(const int8_t *at) {
  return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)at));
}

// Three planes of 32 bytes, interleaved.
template <int Size>
__attribute__((target("avx2"), always_inline)) inline void store_interleaved(__m256i a, __m256i b, __m256i c,
                                                                             void *out) {
  constexpr const Interleaving<Size> &how = kInterleaving<Size>;
  a = _mm256_shuffle_epi8(a, load_twice(how.order[0]));
  b = _mm256_shuffle_epi8(b, load_twice(how.order[1]));
  c = _mm256_shuffle_epi8(c, load_twice(how.order[2]));
  __m256i group[3];
  for (int g = 0; g < 3; g++)
    group[g] = _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, load_twice(how.mask[1][g])), c, load_twice(how.mask[2][g]));
  __m256i *to = (__m256i *)out;
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(group[0], group[1], 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(group[2], group[0], 0x30));
  _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(group[1], group[2], 0x31));
}
#endif
