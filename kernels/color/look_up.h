// SPDX-License-Identifier: Apache-2.0
// Functions of one byte by a table of all 256 results, in vector registers where the processor can.
#pragma once
#include <cstdint>
#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

#if defined(__x86_64__) && defined(__linux__)
inline bool can_look_up() {
  static const bool can = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw");
  return can;
}

// A permutation finds 64 bytes at once in 128 entries: two of them, and the highest bit chooses.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline void look_up(uint8_t *out, const uint8_t *in, int64_t n,
                                                                           const uint8_t *table) {
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
    __m512i x = _mm512_maskz_loadu_epi8(inside, in + i);
    __m512i low = _mm512_permutex2var_epi8(a, x, b), high = _mm512_permutex2var_epi8(c, x, d);
    _mm512_mask_storeu_epi8(out + i, inside, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
}
#else
inline bool can_look_up() { return false; }
inline void look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table) {
  for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];
}
#endif
