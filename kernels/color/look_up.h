// SPDX-License-Identifier: Apache-2.0
// Maps bytes through a table of all 256 results, in vector registers if the processor supports it.
#pragma once
#include <cstdint>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

#if defined(__x86_64__) && defined(__linux__)
// Whether a vector permutation looks up 64 bytes at once.
inline bool can_permute() {
  static const bool can = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw");
  return can;
}
inline bool can_look_up() {
  static const bool can = can_permute() || __builtin_cpu_supports("avx2");
  return can;
}

// One permutation looks up 64 bytes in 128 entries. Two are needed; the highest bit of a byte selects.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline void look_up_permuted(uint8_t *out, const uint8_t *in,
                                                                                    int64_t n, const uint8_t *table) {
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 inside = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
    __m512i x = _mm512_maskz_loadu_epi8(inside, in + i);
    __m512i low = _mm512_permutex2var_epi8(a, x, b), high = _mm512_permutex2var_epi8(c, x, d);
    _mm512_mask_storeu_epi8(out + i, inside, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
}

// The lower 4 bits of a byte look up an entry in each of 16 parts of the table; each of the upper 4 bits halves the
// candidates.
__attribute__((target("avx2"), always_inline)) inline __m256i look_up_halves(__m256i x, const uint8_t *table) {
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi8(15));
  // blendv selects by the highest bit of a byte.
  const __m256i bit4 = _mm256_slli_epi16(x, 3), bit5 = _mm256_slli_epi16(x, 2), bit6 = _mm256_slli_epi16(x, 1);
  auto found = [&](int part) __attribute__((target("avx2"), always_inline)) {
    const __m128i of_part = _mm_loadu_si128((const __m128i *)(table + 16 * part));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of_part), low);
  };
  __m256i quarters[4];
  for (int q = 0; q < 4; q++)
    quarters[q] = _mm256_blendv_epi8(_mm256_blendv_epi8(found(4 * q), found(4 * q + 1), bit4),
                                     _mm256_blendv_epi8(found(4 * q + 2), found(4 * q + 3), bit4), bit5);
  return _mm256_blendv_epi8(_mm256_blendv_epi8(quarters[0], quarters[1], bit6),
                            _mm256_blendv_epi8(quarters[2], quarters[3], bit6), x);
}
__attribute__((target("avx2"))) inline void look_up_avx2(uint8_t *out, const uint8_t *in, int64_t n,
                                                         const uint8_t *table) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m256i a = look_up_halves(_mm256_loadu_si256((const __m256i *)(in + i)), table);
    const __m256i b = look_up_halves(_mm256_loadu_si256((const __m256i *)(in + i + 32)), table);
    _mm256_storeu_si256((__m256i *)(out + i), a);
    _mm256_storeu_si256((__m256i *)(out + i + 32), b);
  }
  for (; i < n; i++) out[i] = table[in[i]];
}

// Requires can_look_up().
inline void look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table) {
  can_permute() ? look_up_permuted(out, in, n, table) : look_up_avx2(out, in, n, table);
}
#elif defined(__aarch64__)
inline bool can_permute() { return false; }
inline bool can_look_up() { return true; }

// NEON looks up bytes in 64 entries. For indices out of range, vqtbx4q_u8 keeps the previous result.
inline void look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table) {
  const uint8x16x4_t a = vld1q_u8_x4(table), b = vld1q_u8_x4(table + 64);
  const uint8x16x4_t c = vld1q_u8_x4(table + 128), d = vld1q_u8_x4(table + 192);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint8x16_t x = vld1q_u8(in + i);
    uint8x16_t found = vqtbl4q_u8(a, x);
    found = vqtbx4q_u8(found, b, vsubq_u8(x, vdupq_n_u8(64)));
    found = vqtbx4q_u8(found, c, vsubq_u8(x, vdupq_n_u8(128)));
    found = vqtbx4q_u8(found, d, vsubq_u8(x, vdupq_n_u8(192)));
    vst1q_u8(out + i, found);
  }
  for (; i < n; i++) out[i] = table[in[i]];
}
#else
inline bool can_permute() { return false; }
inline bool can_look_up() { return false; }
inline void look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table) {
  for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];
}
#endif
