// SPDX-License-Identifier: Apache-2.0
#include "decode/upsample.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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

// Bytes from in[at] on as 16 bits: unchanged, or 3 * near + far. kHigh: the upper half of each lane.
template <bool kTwoRows, bool kHigh>
AVX2_INLINE __m256i weighed(const uint8_t *near, const uint8_t *far, int64_t at) {
  const __m256i x = load(near + at), y = kTwoRows ? load(far + at) : _mm256_setzero_si256();
  const __m256i pairs = kHigh ? _mm256_unpackhi_epi8(x, y) : _mm256_unpacklo_epi8(x, y);
  return kTwoRows ? _mm256_maddubs_epi16(pairs, _mm256_set1_epi16(0x0103)) : pairs;
}

// Output samples 2 i and 2 i + 1 side by side.
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

// For at least kStep samples; the last step overlaps the one before.
template <bool kTwoRows>
AVX2 void vector_h2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out) {
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    const __m256i low = doubled<kTwoRows, false>(near, far, i), high = doubled<kTwoRows, true>(near, far, i);
    _mm256_storeu_si256((__m256i *)(out + 2 * i), _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 2 * i + kStep), _mm256_permute2x128_si256(low, high, 0x31));
    if (i == n - kStep) return;
  }
}

#elif defined(__aarch64__)
constexpr int64_t kStep = 16;

// Sixteen samples as 16 bits: unchanged, or 3 * near + far.
struct Sixteen {
  uint16x8_t low, high;
};

template <bool kTwoRows>
inline Sixteen weighed(const uint8_t *near, const uint8_t *far, int64_t at) {
  const uint8x16_t x = vld1q_u8(near + at);
  if (!kTwoRows) return {vmovl_u8(vget_low_u8(x)), vmovl_high_u8(x)};
  const uint8x16_t y = vld1q_u8(far + at), three = vdupq_n_u8(3);
  return {vaddw_u8(vmull_u8(vget_low_u8(x), vget_low_u8(three)), vget_low_u8(y)),
          vaddw_high_u8(vmull_high_u8(x, three), y)};
}

// 3 * here + beside + kBias, divided by 2^kShift: a rounding shift adds half of it.
template <int kShift, int kBias>
inline uint8x16_t divided(Sixteen here, Sixteen beside) {
  constexpr int half = 1 << (kShift - 1);
  const uint16x8_t three = vdupq_n_u16(3);
  const uint16x8_t low = vmlaq_u16(beside.low, here.low, three), high = vmlaq_u16(beside.high, here.high, three);
  if constexpr (kBias == half) return vrshrn_high_n_u16(vrshrn_n_u16(low, kShift), high, kShift);
  const uint16x8_t bias = vdupq_n_u16(kBias);
  return vshrn_high_n_u16(vshrn_n_u16(vaddq_u16(low, bias), kShift), vaddq_u16(high, bias), kShift);
}

// For at least kStep samples; the last step overlaps the one before.
template <bool kTwoRows>
void vector_h2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out) {
  constexpr int shift = kTwoRows ? 4 : 2, even = kTwoRows ? 8 : 1, odd = kTwoRows ? 7 : 2;
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    const Sixteen left = weighed<kTwoRows>(near, far, i - 1), right = weighed<kTwoRows>(near, far, i + 1);
    const Sixteen here = {vextq_u16(left.low, left.high, 1), vextq_u16(right.low, right.high, 7)};
    uint8x16x2_t both;
    both.val[0] = divided<shift, even>(here, left);
    both.val[1] = divided<shift, odd>(here, right);
    vst2q_u8(out + 2 * i, both);
    if (i == n - kStep) return;
  }
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
bool use_vectors(int64_t n) { return n >= kStep && jpeg_level() == VECTOR_LOOPS; }
#else
bool use_vectors(int64_t) { return false; }
template <bool kTwoRows>
void vector_h2(const uint8_t *, const uint8_t *, int64_t, uint8_t *) {}
#endif

}  // namespace

void upsample_h2(const uint8_t *in, int64_t n, uint8_t *out) {
  if (use_vectors(n)) return vector_h2<false>(in, in, n, out);
  plain_h2(in, n, out);
}

void upsample_h2v2(const uint8_t *near, const uint8_t *far, int64_t n, uint8_t *out) {
  if (use_vectors(n)) return vector_h2<true>(near, far, n, out);
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
