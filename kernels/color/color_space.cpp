// SPDX-License-Identifier: Apache-2.0
#include "color/color_space.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "color/planes.h"
#include "core/kernel.h"

using Pixels = uint8_t *__restrict;
using ConstPixels = const uint8_t *__restrict;

// BGR is RGB with the outer planes exchanged: `swap` says so.
CLONES static void rgb_ycbcr(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from, to;
  const uint8_t *red = swap ? from.c : from.a, *blue = swap ? from.a : from.c;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          float r = red[i], g = from.b[i], b = blue[i];
          to.a[i] = rgb_to_y(r, g, b);
          to.b[i] = rgb_to_cb(r, g, b);
          to.c[i] = rgb_to_cr(r, g, b);
        }
        to.store(out + 3 * first, n);
      });
}

CLONES static void ycbcr_rgb(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from, to;
  uint8_t *red = swap ? to.c : to.a, *blue = swap ? to.a : to.c;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          float y = from.a[i], cb = from.b[i], cr = from.c[i];
          red[i] = ycbcr_to_r(y, cb, cr);
          to.b[i] = ycbcr_to_g(y, cb, cr);
          blue[i] = ycbcr_to_b(y, cb, cr);
        }
        to.store(out + 3 * first, n);
      });
}

#if defined(__x86_64__)
// The same weights in units of 2^-15, which sum to 1: exact sums in 32 bits.
__attribute__((target("avx2"))) static void rgb_gray_avx2(uint8_t *out, const uint8_t *in, int64_t n_pixels,
                                                          bool swap) {
  const short first = swap ? 3735 : 9798, last = swap ? 9798 : 3735;
  const __m256i of_two = _mm256_set1_epi32(19235 << 16 | first), of_last = _mm256_set1_epi32(last);
  // Words of four pixels, in each half of a vector.
  const __m256i two =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
  const __m256i third =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
  const __m256i half = _mm256_set1_epi32(1 << 14), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t i = 0;
  for (; i + 34 <= n_pixels; i += 32) {  // the last load takes four bytes of the next pixels
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
#endif

CLONES static void rgb_gray(Pixels out, ConstPixels in, int64_t n_pixels, bool swap) {
  Planes<uint8_t> from;
  const uint8_t *red = swap ? from.c : from.a, *blue = swap ? from.a : from.c;
  GrayWeights weights;
  asm("" : "+m"(weights));  // Known weights would become shifts and additions, which are slower.
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) out[first + i] = rgb_to_gray(red[i], from.b[i], blue[i], weights);
      });
}

typedef uint8_t Bytes __attribute__((vector_size(16)));

// Five pixels at a time: the sixteenth byte written is wrong until the next five are.
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
  // With AVX-512 the compiler does as well.
  static const bool avx2 = __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("x86-64-v4");
  if (avx2) return rgb_gray_avx2(out, in, n_pixels, swap);
#endif
  rgb_gray(out, in, n_pixels, swap);
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
    a.to == GRAY ? ycbcr_gray(o, x, n) : ycbcr_rgb(o, x, n, a.to == BGR);
  } else if (a.to == YCBCR) {
    rgb_ycbcr(o, x, n, a.from == BGR);
  } else if (a.to == GRAY) {
    gray(o, x, n, a.from == BGR);
  } else {
    exchange(o, x, n);
  }
}

EXPORT_KERNEL(color_space, ColorSpaceArgs, run)
