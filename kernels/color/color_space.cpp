// SPDX-License-Identifier: Apache-2.0
#include "color/color_space.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "color/planes.h"
#include "core/kernel.h"

using Pixels = uint8_t *__restrict;
using ConstPixels = const uint8_t *__restrict;

enum Direction { TO_YCBCR, FROM_YCBCR };

// Converts three channels. V: a float or a vector of floats. In the functions below, `swap` exchanges red and blue for
// BGR.
template <Direction D, class V>
static inline __attribute__((always_inline)) void convert(V &a, V &b, V &c) {
  const V x = a, y = b, z = c;
  if (D == TO_YCBCR)
    a = rgb_to_y(x, y, z), b = rgb_to_cb(x, y, z), c = rgb_to_cr(x, y, z);
  else
    a = ycbcr_to_r(x, y, z), b = ycbcr_to_g(x, y, z), c = ycbcr_to_b(x, y, z);
}

#if defined(__aarch64__)
// Three channels of 16 pixels, each as four vectors of floats.
struct SixteenPixels {
  float32x4_t c[3][4];
};

static inline SixteenPixels load_sixteen(const uint8_t *in) {
  constexpr uint8_t z = 255;  // an out-of-range index, which gives 0
  const uint8x16_t order = {0, z, z, z, 1, z, z, z, 2, z, z, z, 3, z, z, z};
  const uint8x16x3_t bytes = vld3q_u8(in);
  SixteenPixels found;
  for (int c = 0; c < 3; c++)
    for (int q = 0; q < 4; q++) {
      // The addition saturates, so that 255 stays out of range.
      const uint8x16_t at = vqaddq_u8(order, vdupq_n_u8((uint8_t)(4 * q)));
      found.c[c][q] = vcvtq_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(bytes.val[c], at)));
    }
  return found;
}

// As saturate<uint8_t>.
static inline uint8x16_t saturated(const float32x4_t x[4]) {
  uint32x4_t w[4];
  for (int q = 0; q < 4; q++) w[q] = vcvtq_u32_f32(x[q] + 0.49999997f);
  const uint16x8_t low = vqmovn_high_u32(vqmovn_u32(w[0]), w[1]), high = vqmovn_high_u32(vqmovn_u32(w[2]), w[3]);
  return vqmovn_high_u16(vqmovn_u16(low), high);
}

// Converts 16 pixels at a time. Returns the number of pixels converted.
template <Direction D>
static int64_t by_sixteen(uint8_t *out, const uint8_t *in, int64_t n_pixels, bool swap) {
  const bool swap_in = swap && D == TO_YCBCR, swap_out = swap && D == FROM_YCBCR;
  int64_t i = 0;
  for (; i + 16 <= n_pixels; i += 16) {
    const SixteenPixels x = load_sixteen(in + 3 * i);
    SixteenPixels y;
    for (int q = 0; q < 4; q++) {
      float32x4_t a = swap_in ? x.c[2][q] : x.c[0][q], b = x.c[1][q], c = swap_in ? x.c[0][q] : x.c[2][q];
      convert<D>(a, b, c);
      y.c[0][q] = swap_out ? c : a, y.c[1][q] = b, y.c[2][q] = swap_out ? a : c;
    }
    vst3q_u8(out + 3 * i, uint8x16x3_t{{saturated(y.c[0]), saturated(y.c[1]), saturated(y.c[2])}});
  }
  return i;
}
#endif

template <Direction D>
CLONES static void by_planes(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  const bool swap_in = swap && D == TO_YCBCR, swap_out = swap && D == FROM_YCBCR;
  Planes<uint8_t> from, to;
  const uint8_t *first_in = swap_in ? from.c : from.a, *last_in = swap_in ? from.a : from.c;
  uint8_t *first_out = swap_out ? to.c : to.a, *last_out = swap_out ? to.a : to.c;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          float a = first_in[i], b = from.b[i], c = last_in[i];
          convert<D>(a, b, c);
          first_out[i] = saturate<uint8_t>(a);
          to.b[i] = saturate<uint8_t>(b);
          last_out[i] = saturate<uint8_t>(c);
        }
        to.store(out + 3 * first, n);
      });
}

#if defined(__x86_64__)
// The weights in units of 2^-15, with the sum 1, which makes sums in 32 bits exact.
__attribute__((target("avx2"))) static void rgb_gray_avx2(uint8_t *out, const uint8_t *in, int64_t n_pixels,
                                                          bool swap) {
  const short first = swap ? 3735 : 9798, last = swap ? 9798 : 3735;
  const __m256i of_two = _mm256_set1_epi32(19235 << 16 | first), of_last = _mm256_set1_epi32(last);
  // Shuffles for four pixels in each half of a vector.
  const __m256i two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
  const __m256i third =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
  const __m256i half = _mm256_set1_epi32(1 << 14), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t i = 0;
  for (; i + 34 <= n_pixels; i += 32) {  // the last load reads four bytes of the next pixels
    const uint8_t *const from = in + 3 * i;
    auto eight = [&](int k) __attribute__((target("avx2"), always_inline)) {
      const __m256i bytes =
          _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(from + 24 * k))),
                                  _mm_loadu_si128((const __m128i *)(from + 24 * k + 12)), 1);
      const __m256i a = _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, two), of_two);
      const __m256i b = _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, third), of_last);
      return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(a, b), half), 15);
    };
    const __m256i all =
        _mm256_packus_epi16(_mm256_packs_epi32(eight(0), eight(1)), _mm256_packs_epi32(eight(2), eight(3)));
    _mm256_storeu_si256((__m256i *)(out + i), _mm256_permutevar8x32_epi32(all, order));
  }
  for (; i < n_pixels; i++) out[i] = rgb_to_gray(in[3 * i + 2 * swap], in[3 * i + 1], in[3 * i + 2 - 2 * swap]);
}
#elif defined(__aarch64__)
// As rgb_to_gray, sixteen pixels at a time.
static void rgb_gray_neon(uint8_t *out, const uint8_t *in, int64_t n_pixels, bool swap) {
  const GrayWeights weights;
  uint8x16_t high[3], low[3];
  for (int c = 0; c < 3; c++) {
    const int of = swap ? 2 - c : c;
    high[c] = vdupq_n_u8((uint8_t)weights.high[of]), low[c] = vdupq_n_u8((uint8_t)weights.low[of]);
  }
  auto lower = [](const uint8x16x3_t &x, const uint8x16_t w[3]) {
    uint16x8_t sum = vmull_u8(vget_low_u8(x.val[0]), vget_low_u8(w[0]));
    for (int c = 1; c < 3; c++) sum = vmlal_u8(sum, vget_low_u8(x.val[c]), vget_low_u8(w[c]));
    return sum;
  };
  auto upper = [](const uint8x16x3_t &x, const uint8x16_t w[3]) {
    uint16x8_t sum = vmull_high_u8(x.val[0], w[0]);
    for (int c = 1; c < 3; c++) sum = vmlal_high_u8(sum, x.val[c], w[c]);
    return sum;
  };
  int64_t i = 0;
  for (; i + 16 <= n_pixels; i += 16) {
    const uint8x16x3_t x = vld3q_u8(in + 3 * i);
    const uint16x8_t a = vsraq_n_u16(lower(x, high), lower(x, low), 8);
    const uint16x8_t b = vsraq_n_u16(upper(x, high), upper(x, low), 8);
    vst1q_u8(out + i, vrshrn_high_n_u16(vrshrn_n_u16(a, 8), b, 8));
  }
  for (; i < n_pixels; i++) out[i] = rgb_to_gray(in[3 * i + 2 * swap], in[3 * i + 1], in[3 * i + 2 - 2 * swap]);
}
#endif

#if !defined(__aarch64__)
CLONES static void rgb_gray(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from;
  const uint8_t *red = swap ? from.c : from.a, *blue = swap ? from.a : from.c;
  GrayWeights weights;
  asm("" : "+m"(weights));  // Compile-time weights would become shifts and additions, which are slower.
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) out[first + i] = rgb_to_gray(red[i], from.b[i], blue[i], weights);
      });
}
#endif

typedef uint8_t Bytes __attribute__((vector_size(16)));

// Five pixels at a time: the 16th byte written is wrong until the next step overwrites it.
CLONES static void exchange(Pixels out, ConstPixels in, int64_t n_pixels) {
  const Bytes order = {2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 15};
  int64_t i = 0, n = 3 * n_pixels;
  for (; i + 16 <= n; i += 15) {
    Bytes x;
    std::memcpy(&x, in + i, sizeof x);
    x = __builtin_shuffle(x, order);
    std::memcpy(out + i, &x, sizeof x);
  }
  for (; i < n; i += 3) out[i] = in[i + 2], out[i + 1] = in[i + 1], out[i + 2] = in[i];
}

CLONES static void ycbcr_gray(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[i] = y_to_gray(in[3 * i]);
}

CLONES static void gray_rgb(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
}

CLONES static void gray_ycbcr(Pixels out, ConstPixels in, int64_t n_pixels) {
  for (int64_t i = 0; i < n_pixels; i++) out[3 * i] = gray_to_y(in[i]), out[3 * i + 1] = out[3 * i + 2] = 128;
}

static void gray(uint8_t *out, const uint8_t *in, int64_t n_pixels, bool swap) {
#if defined(__x86_64__)
  // With AVX-512, the compiler's code for rgb_gray is as fast.
  static const bool avx2 = __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("x86-64-v4");
  if (avx2) return rgb_gray_avx2(out, in, n_pixels, swap);
#endif
#if defined(__aarch64__)
  rgb_gray_neon(out, in, n_pixels, swap);
#else
  rgb_gray(out, in, n_pixels, swap);
#endif
}

template <Direction D>
static void ycbcr(uint8_t *out, const uint8_t *in, int64_t n_pixels, bool swap) {
  int64_t done = 0;
#if defined(__aarch64__)
  done = by_sixteen<D>(out, in, n_pixels, swap);
#endif
  by_planes<D>(out + 3 * done, in + 3 * done, n_pixels - done, swap);
}

static void run(const Tensor *out, const Tensor *in, const ColorSpaceArgs &a, Scratch &) {
  uint8_t *o = out->as<uint8_t>();
  const uint8_t *x = in->as<uint8_t>();
  int64_t n = in->volume() / (a.from == GRAY ? 1 : 3);
  if (a.from == a.to) {
    if (n) std::memcpy(o, x, in->volume());
  } else if (a.from == GRAY) {
    a.to == YCBCR ? gray_ycbcr(o, x, n) : gray_rgb(o, x, n);
  } else if (a.from == YCBCR) {
    a.to == GRAY ? ycbcr_gray(o, x, n) : ycbcr<FROM_YCBCR>(o, x, n, a.to == BGR);
  } else if (a.to == YCBCR) {
    ycbcr<TO_YCBCR>(o, x, n, a.from == BGR);
  } else if (a.to == GRAY) {
    gray(o, x, n, a.from == BGR);
  } else {
    exchange(o, x, n);
  }
}

EXPORT_KERNEL(color_space, ColorSpaceArgs, run)
