// SPDX-License-Identifier: Apache-2.0
#include "decode/ycc.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>

#include "color/interleave.h"
#include "core/kernel.h"
#include "decode/jpeg_level.h"

namespace {

constexpr int32_t fixed(double x) { return (int32_t)(x * 65536 + 0.5); }

inline uint8_t limit(int x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }

CLONES void plain(const uint8_t *__restrict y, const uint8_t *__restrict cb, const uint8_t *__restrict cr, int64_t n,
                  int red, uint8_t *__restrict out) {
  constexpr int32_t half = 1 << 15;
  for (int64_t i = 0; i < n; i++, out += 3) {
    const int u = cb[i] - 128, v = cr[i] - 128;
    out[red] = limit(y[i] + ((fixed(1.40200) * v + half) >> 16));
    out[1] = limit(y[i] + ((-fixed(0.34414) * u - fixed(0.71414) * v + half) >> 16));
    out[2 - red] = limit(y[i] + ((fixed(1.77200) * u + half) >> 16));
  }
}

#if defined(__x86_64__)
constexpr int64_t kStep = 32;

struct Rgb {
  __m256i r, g, b;
};

// 16 pixels of 16 bits. The factors are split so that 16-bit products are exact (for all 256 values).
__attribute__((target("avx2"), always_inline)) inline Rgb convert(__m256i y, __m256i u, __m256i v) {
  const __m256i middle = _mm256_set1_epi16(128), half = _mm256_set1_epi32(1 << 15);
  u = _mm256_sub_epi16(u, middle), v = _mm256_sub_epi16(v, middle);
  // 1.402 = 1 + 13173 / 2^15, 1.772 = 2 - 7471 / 2^15, -0.71414 = -1 + 18734 / 2^16
  const __m256i r = _mm256_add_epi16(v, _mm256_mulhrs_epi16(v, _mm256_set1_epi16(13173)));
  const __m256i b = _mm256_add_epi16(_mm256_add_epi16(u, u), _mm256_mulhrs_epi16(u, _mm256_set1_epi16(-7471)));
  const __m256i factors = _mm256_set1_epi32((int32_t)(uint16_t)-fixed(0.34414) | (65536 - fixed(0.71414)) << 16);
  const __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(u, v), factors), half);
  const __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(u, v), factors), half);
  const __m256i g = _mm256_packs_epi32(_mm256_srai_epi32(low, 16), _mm256_srai_epi32(high, 16));
  return {_mm256_add_epi16(y, r), _mm256_add_epi16(_mm256_sub_epi16(y, v), g), _mm256_add_epi16(y, b)};
}

// For at least kStep pixels; the last step overlaps the one before.
__attribute__((target("avx2"))) void avx2(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int64_t n,
                                          bool blue_first, uint8_t *out) {
  const __m256i zero = _mm256_setzero_si256();
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    const __m256i l = _mm256_loadu_si256((const __m256i *)(y + i)), u = _mm256_loadu_si256((const __m256i *)(cb + i)),
                  v = _mm256_loadu_si256((const __m256i *)(cr + i));
    const Rgb a = convert(_mm256_unpacklo_epi8(l, zero), _mm256_unpacklo_epi8(u, zero), _mm256_unpacklo_epi8(v, zero));
    const Rgb b = convert(_mm256_unpackhi_epi8(l, zero), _mm256_unpackhi_epi8(u, zero), _mm256_unpackhi_epi8(v, zero));
    const __m256i red = _mm256_packus_epi16(a.r, b.r), green = _mm256_packus_epi16(a.g, b.g),
                  blue = _mm256_packus_epi16(a.b, b.b);
    if (blue_first)
      store_interleaved<1>(blue, green, red, out + 3 * i);
    else
      store_interleaved<1>(red, green, blue, out + 3 * i);
    if (i == n - kStep) return;
  }
}
#elif defined(__aarch64__)
constexpr int64_t kStep = 16;

// y + u as bytes.
inline uint8x16_t sum(uint8x16_t y, int16x8_t low, int16x8_t high) {
  const uint16x8_t a = vaddw_u8(vreinterpretq_u16_s16(low), vget_low_u8(y));
  const uint16x8_t b = vaddw_high_u8(vreinterpretq_u16_s16(high), y);
  return vqmovun_high_s16(vqmovun_s16(vreinterpretq_s16_u16(a)), vreinterpretq_s16_u16(b));
}
inline int16x8_t red_of(int16x8_t v) { return vaddq_s16(v, vqrdmulhq_n_s16(v, 13173)); }
inline int16x8_t blue_of(int16x8_t u) { return vaddq_s16(vaddq_s16(u, u), vqrdmulhq_n_s16(u, -7471)); }
inline int16x8_t green_of(int16x8_t u, int16x8_t v) {
  constexpr int16_t of_u = -fixed(0.34414), of_v = 65536 - fixed(0.71414);
  const int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(u), of_u), vget_low_s16(v), of_v);
  const int32x4_t high = vmlal_high_n_s16(vmull_high_n_s16(u, of_u), v, of_v);
  return vsubq_s16(vrshrn_high_n_s32(vrshrn_n_s32(low, 16), high, 16), v);
}

// For at least kStep pixels; the last step overlaps the one before. The factors are split as for AVX2.
template <bool kBlueFirst>
void neon(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int64_t n, uint8_t *out) {
  const uint8x16_t middle = vdupq_n_u8(128);
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    const uint8x16_t l = vld1q_u8(y + i), blue = vld1q_u8(cb + i), red = vld1q_u8(cr + i);
    const int16x8_t u0 = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(blue), vget_low_u8(middle))),
                    u1 = vreinterpretq_s16_u16(vsubl_high_u8(blue, middle)),
                    v0 = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(red), vget_low_u8(middle))),
                    v1 = vreinterpretq_s16_u16(vsubl_high_u8(red, middle));
    uint8x16x3_t pixels;
    pixels.val[kBlueFirst ? 2 : 0] = sum(l, red_of(v0), red_of(v1));
    pixels.val[1] = sum(l, green_of(u0, v0), green_of(u1, v1));
    pixels.val[kBlueFirst ? 0 : 2] = sum(l, blue_of(u0), blue_of(u1));
    vst3q_u8(out + 3 * i, pixels);
    if (i == n - kStep) return;
  }
}
#endif

}  // namespace

void ycc_to_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int64_t n, bool blue_first, uint8_t *out) {
#if defined(__x86_64__)
  if (n >= kStep && jpeg_level() == VECTOR_LOOPS) return avx2(y, cb, cr, n, blue_first, out);
#elif defined(__aarch64__)
  if (n >= kStep && jpeg_level() == VECTOR_LOOPS)
    return blue_first ? neon<true>(y, cb, cr, n, out) : neon<false>(y, cb, cr, n, out);
#endif
  plain(y, cb, cr, n, blue_first ? 2 : 0, out);
}
