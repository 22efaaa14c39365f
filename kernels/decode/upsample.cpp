// SPDX-License-Identifier: Apache-2.0
#include "decode/upsample.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "core/kernel.h"
#include "decode/jpeg_level.h"

namespace {

CLONES void plain_h2(const uint8_t *__restrict in, int64_t n, uint8_t *__restrict out) {
  for (int64_t i = 0; i < n; i++) {
    const uint16_t x = 3 * in[i];
    out[2 * i] = (uint8_t)((uint16_t)(x + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = (uint8_t)((uint16_t)(x + in[i + 1] + 2) >> 2);
  }
}

CLONES void plain_h2v2(const uint8_t *__restrict near, const uint8_t *__restrict far, int64_t n,
                       uint8_t *__restrict out) {
  for (int64_t i = 0; i < n; i++) {
    const uint16_t left = 3 * near[i - 1] + far[i - 1], here = 3 * near[i] + far[i],
                   right = 3 * near[i + 1] + far[i + 1];
    out[2 * i] = (uint8_t)((uint16_t)(3 * here + left + 8) >> 4);
    out[2 * i + 1] = (uint8_t)((uint16_t)(3 * here + right + 7) >> 4);
  }
}

#if defined(__x86_64__)
constexpr int64_t kStep = 32;
#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

AVX2_INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }

// Bytes from in[at] on as 16 bits: themselves, or 3 * near + far. kHigh: the upper half of each lane.
template <bool kTwoRows, bool kHigh>
AVX2_INLINE __m256i weighed(const uint8_t *near, const uint8_t *far, int64_t at) {
  const __m256i x = load(near + at), y = kTwoRows ? load(far + at) : _mm256_setzero_si256();
  const __m256i pairs = kHigh ? _mm256_unpackhi_epi8(x, y) : _mm256_unpacklo_epi8(x, y);
  return kTwoRows ? _mm256_maddubs_epi16(pairs, _mm256_set1_epi16(0x0103)) : pairs;
}

// Samples 2 i and 2 i + 1 of the output side by side.
template <bool kTwoRows, bool kHigh>
AVX2_INLINE __m256i doubled(const uint8_t *near, const uint8_t *far, int64_t i) {
  constexpr int shift = kTwoRows ? 4 : 2;
  const __m256i here = weighed<kTwoRows, kHigh>(near, far, i);
  const __m256i three = _mm256_add_epi16(_mm256_add_epi16(here, here), here);
  const __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, _mm256_set1_epi16(kTwoRows ? 8 : 1)),
                                        weighed<kTwoRows, kHigh>(near, far, i - 1));
  const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, _mm256_set1_epi16(kTwoRows ? 7 : 2)),
                                       weighed<kTwoRows, kHigh>(near, far, i + 1));
  const __m256i high = _mm256_and_si256(_mm256_slli_epi16(odd, 8 - shift), _mm256_set1_epi16((int16_t)0xff00));
  return _mm256_or_si256(_mm256_srli_epi16(even, shift), high);
}

// At least kStep samples; the last step overlaps the one before.
template <bool kTwoRows>
AVX2 void avx2_h2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out) {
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    const __m256i low = doubled<kTwoRows, false>(near, far, i), high = doubled<kTwoRows, true>(near, far, i);
    _mm256_storeu_si256((__m256i *)(out + 2 * i), _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 2 * i + kStep), _mm256_permute2x128_si256(low, high, 0x31));
    if (i == n - kStep) return;
  }
}

bool use_avx2(int64_t n) { return n >= kStep && jpeg_level() == AVX2_LOOPS; }
#endif

}  // namespace

void upsample_h2(const uint8_t *in, int64_t n, uint8_t *out) {
#if defined(__x86_64__)
  if (use_avx2(n)) return avx2_h2<false>(in, in, n, out);
#endif
  plain_h2(in, n, out);
}

void upsample_h2v2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out) {
#if defined(__x86_64__)
  if (use_avx2(n)) return avx2_h2<true>(near, far, n, out);
#endif
  plain_h2v2(near, far, n, out);
}

CLONES void upsample_v2(const uint8_t *__restrict near, const uint8_t *__restrict far, bool above, int64_t n,
                        uint8_t *__restrict out) {
  const uint16_t bias = above ? 1 : 2;
  for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)((uint16_t)(3 * near[i] + far[i] + bias) >> 2);
}

void upsample_repeat(const uint8_t *in, int64_t n, int times, uint8_t *out) {
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < times; k++) *out++ = in[i];
}
