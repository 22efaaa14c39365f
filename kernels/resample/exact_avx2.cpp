// SPDX-License-Identifier: Apache-2.0
// The loops of kernels/resample/exact.cpp with 22-bit weights, for AVX2. A weight is split into hi * 2^12 + lo, so that
// both parts fit the 16-bit multiply-add, which takes two taps at a time. Intermediate overflow cancels in the sum.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "resample/fixed_point.h"

#define AVX2 __attribute__((target("avx2")))

namespace {

constexpr int kLow = 12, kBlock = 32;

int32_t high_part(int32_t w) { return w >> kLow; }
int32_t low_part(int32_t w) { return w & ((1 << kLow) - 1); }
int32_t pair(int32_t a, int32_t b) { return (int32_t)((uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16); }

}  // namespace

AVX2 void exact_rows_avx2(uint8_t *out, const uint8_t *in, int64_t pitch, const int32_t *weights, int taps, int n,
                          int bits) {
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (bits - 1));
  const __m128i shift = _mm_cvtsi32_si128(bits);
  for (int i = 0;; i = std::min(i + kBlock, n - kBlock)) {
    __m256i high[4] = {zero, zero, zero, zero}, low[4] = {half, half, half, half};
    for (int t = 0; t < taps; t += 2) {
      const bool two = t + 1 < taps;
      const int32_t first = weights[t], second = two ? weights[t + 1] : 0;
      const uint8_t *row = in + t * pitch + i;
      const __m256i a = _mm256_loadu_si256((const __m256i *)row);
      const __m256i b = two ? _mm256_loadu_si256((const __m256i *)(row + pitch)) : zero;
      const __m256i w = _mm256_set1_epi32(pair(high_part(first), high_part(second)));
      const __m256i v = _mm256_set1_epi32(pair(low_part(first), low_part(second)));
      const __m256i lo = _mm256_unpacklo_epi8(a, b), hi = _mm256_unpackhi_epi8(a, b);
      const __m256i x[4] = {_mm256_unpacklo_epi8(lo, zero), _mm256_unpackhi_epi8(lo, zero),
                            _mm256_unpacklo_epi8(hi, zero), _mm256_unpackhi_epi8(hi, zero)};
      for (int k = 0; k < 4; k++) {
        high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(x[k], w));
        low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(x[k], v));
      }
    }
    for (int k = 0; k < 4; k++)
      low[k] = _mm256_sra_epi32(_mm256_add_epi32(low[k], _mm256_slli_epi32(high[k], kLow)), shift);
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(low[0], low[1]), _mm256_packs_epi32(low[2], low[3]));
    _mm256_storeu_si256((__m256i *)(out + i), bytes);
    if (i == n - kBlock) return;
  }
}

// group_weights: for four taps at a time, the high and the low parts of the weights in the order in which the pixels'
// bytes are shuffled.
static void prepare(Taps &t) {
  if (t.prepared_for == 3) return;
  t.prepared_for = 3;
  t.group = (t.k + 3) / 4;
  t.group_weights.resize((size_t)t.n * t.group * 32);
  int32_t *to = (int32_t *)t.group_weights.data();
  for (int j = 0; j < t.n; j++) {
    const int32_t *w = t.exact.data() + (int64_t)j * t.stride;
    for (int k = 0; k < 4 * t.group; k += 2) {
      const int32_t first = k < t.k ? w[k] : 0, second = k + 1 < t.k ? w[k + 1] : 0;
      const int64_t at = (int64_t)(j * t.group + k / 4) * 16 + k % 4 * 2;
      for (int c = 0; c < 4; c++) {
        to[at + c] = pair(high_part(first), high_part(second));
        to[at + 8 + c] = pair(low_part(first), low_part(second));
      }
    }
  }
}

AVX2 void exact_pixels_avx2(uint8_t *out, const uint8_t *row, Taps &t) {
  prepare(t);
  const __m256i order = _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 8, -1, 12, -1, 9, -1,
                                         13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const __m256i zero = _mm256_setzero_si256();
  const __m128i half = _mm_set1_epi32(1 << (t.exact_bits - 1)), shift = _mm_cvtsi32_si128(t.exact_bits);
  const __m256i *w = (const __m256i *)t.group_weights.data();
  for (int j = 0; j < t.n; j++, out += 4) {
    const uint8_t *p = row + (int64_t)(t.first[j] - t.lo) * 4;
    __m256i high = zero, low = zero;
    for (int g = 0; g < t.group; g++, p += 16, w += 2) {
      const __m256i x = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)), order);
      high = _mm256_add_epi32(high, _mm256_madd_epi16(x, _mm256_loadu_si256(w)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(x, _mm256_loadu_si256(w + 1)));
    }
    const __m256i both = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLow));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sum = _mm_sra_epi32(_mm_add_epi32(sum, half), shift);
    sum = _mm_packs_epi32(sum, sum);
    const int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    __builtin_memcpy(out, &pixel, 4);
  }
}
#endif
