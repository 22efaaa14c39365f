// SPDX-License-Identifier: Apache-2.0
// Pixels from YCbCr planes with chroma at half resolution, 8 pixels of a row at a time.
#pragma once
#include "color/gpu_jpeg_colors.h"

// Byte selectors for a thread's four chroma samples at columns x to x + 3 and those beside them. `last` is the last
// column; beyond a border, the border's sample is repeated.
struct JpegColumns {
  uint32_t even, odd, before, behind;
  bool next;  // whether there are samples behind
  DEVICE JpegColumns(int x, int last) : next(x + 4 <= last) {
    const int end = next ? 3 : last - x;
    even = 0x4040 | (uint32_t)min(2, end) << 8;
    odd = 0x4040 | (uint32_t)min(3, end) << 8 | (uint32_t)min(1, end);
    before = x > 0 ? 3 : 4;
    behind = (uint32_t)(next ? 4 : 4 + end) << 8;
  }
};

// Chroma samples of a row as pairs of 16 bits: samples 0 and 2, 1 and 3, and their neighbours -1 and 4.
struct JpegChroma {
  uint32_t even, odd, beside;
  DEVICE void read(const uint8_t *at, const JpegColumns &columns) {
    const uint32_t *words = (const uint32_t *)at;
    const uint32_t before = load(words - 1), four = load(words), behind = load(words + 1);
    even = __byte_perm(four, 0, columns.even);
    odd = __byte_perm(four, 0, columns.odd);
    beside = __byte_perm(__byte_perm(before, four, columns.before), columns.next ? behind : four, columns.behind) &
             0x00ff00ff;
  }
};

// Chroma of 8 pixels as pairs of 16 bits, each in the higher byte: pixels 0 and 4, 1 and 5, 2 and 6, 3 and 7. Each is
// 3/4 of the nearer and 1/4 of the farther sample along both axes, rounded down and up alternately.
DEVICE void jpeg_interpolate(uint32_t (&c)[4], const JpegChroma &near, const JpegChroma &far) {
  constexpr uint32_t kUp = 0x00800080, kDown = 0x00700070;  // 8 and 7 sixteenths
  const uint32_t even = near.even * 48 + far.even * 16, odd = near.odd * 48 + far.odd * 16;
  const uint32_t beside = near.beside * 48 + far.beside * 16;
  c[0] = 3 * even + (__byte_perm(beside, odd, 0x5410) + kUp);
  c[1] = 3 * even + (odd + kDown);
  c[2] = 3 * odd + (even + kUp);
  c[3] = 3 * odd + (__byte_perm(even, beside, 0x7632) + kDown);
}

// Sums of pairs of 16-bit integers, clamped to [0, 255].
DEVICE uint32_t jpeg_sums(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __viaddmin_s16x2_relu(a, b, 0x00ff00ff);
#else
  uint32_t sums = 0;
  for (int k = 0; k < 32; k += 16) {
    const int32_t v = (int16_t)(a >> k) + (int16_t)(b >> k);
    sums |= (uint32_t)(v < 0 ? 0 : v > 255 ? 255 : v) << k;
  }
  return sums;
#endif
}

// 8 pixels from luma, in the order of jpeg_block, and chroma, as by jpeg_rgb of decode/jpeg_pixels.h. Factors have 16
// bits; larger ones are split in two.
DEVICE void jpeg_rgb_words(uint32_t (&w)[6], uint2 luma, const uint32_t (&blue)[4], const uint32_t (&red)[4]) {
  constexpr uint32_t kHalf = 1 << 15;
  const auto twice = [](uint32_t pair, uint32_t a, uint32_t b, uint32_t more) {  // (a * x + b * x + more) >> 16
    const uint32_t low = dot_unsigned_halves<false>(b << 16, pair, dot_unsigned_halves<false>(a << 16, pair, more));
    const uint32_t high = dot_unsigned_halves<true>(b << 16, pair, dot_unsigned_halves<true>(a << 16, pair, more));
    return __byte_perm(low, high, 0x7632);
  };
  uint32_t r[4], g[4], b[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t y = (k < 2 ? luma.x : luma.y) >> k % 2 * 8 & 0x00ff00ff;
    r[k] = jpeg_sums(y, twice(red[k], 45941, 45940, kHalf - 128u * 91881));    // 1.40200
    b[k] = jpeg_sums(y, twice(blue[k], 58065, 58065, kHalf - 128u * 116130));  // 1.77200
    // 0.34414, 0.71414; floor(-s / 2^16) is ~floor((s - 1) / 2^16)
    constexpr uint32_t more = 0u - kHalf - 128u * (22554 + 46802) - 1;
    const uint32_t low =
        dot_unsigned_halves<false>(46802 << 16, red[k], dot_unsigned_halves<false>(22554 << 16, blue[k], more));
    const uint32_t high =
        dot_unsigned_halves<true>(46802 << 16, red[k], dot_unsigned_halves<true>(22554 << 16, blue[k], more));
    g[k] = jpeg_sums(y, ~__byte_perm(low, high, 0x7632));
  }
  const uint32_t rg0 = __byte_perm(r[0], g[0], 0x6240), br0 = __byte_perm(b[0], r[1], 0x6240);
  const uint32_t gb1 = __byte_perm(g[1], b[1], 0x6240), rg2 = __byte_perm(r[2], g[2], 0x6240);
  const uint32_t br2 = __byte_perm(b[2], r[3], 0x6240), gb3 = __byte_perm(g[3], b[3], 0x6240);
  w[0] = __byte_perm(rg0, br0, 0x5410), w[1] = __byte_perm(gb1, rg2, 0x5410), w[2] = __byte_perm(br2, gb3, 0x5410);
  w[3] = __byte_perm(rg0, br0, 0x7632), w[4] = __byte_perm(gb1, rg2, 0x7632), w[5] = __byte_perm(br2, gb3, 0x7632);
}

// Stores 8 pixels of a row from column x on, those inside [0, width). If the lanes `before` and `behind` hold the
// neighbouring pixels, each lane writes whole words, the first with the last bytes of the lane before.
DEVICE void jpeg_store(uint8_t *row, const uint32_t (&w)[6], int x, int width, bool valid, bool before, bool behind) {
  const uint32_t last = __shfl_up_sync(0xffffffffu, w[5], 1);
  if (!valid) return;
  uint8_t *to = row + 3 * x;
  if (x < 0) {  // the first pixels of a window
#pragma unroll
    for (int j = 0; j < 24; j++)
      if (x + j / 3 >= 0 && x + j / 3 < width) to[j] = (uint8_t)(w[j / 4] >> j % 4 * 8);
    return;
  }
  const int ahead = (int)((unsigned long long)to & 3);
  uint32_t *words = (uint32_t *)(to - ahead), shifted[7];
  shifted[0] = __funnelshift_l(last, w[0], 8 * ahead);
#pragma unroll
  for (int k = 1; k < 6; k++) shifted[k] = __funnelshift_l(w[k - 1], w[k], 8 * ahead);
  shifted[6] = __funnelshift_l(w[5], 0, 8 * ahead);
  const bool head = !before && ahead;
  int end = ahead + 24;
  uint32_t rest = shifted[6];
  if (x + 8 <= width) {
    if (!head) words[0] = shifted[0];
#pragma unroll
    for (int k = 1; k < 6; k++) words[k] = shifted[k];
  } else {
    end = ahead + 3 * (width - x);
    if (!head && end >= 4) words[0] = shifted[0];
    rest = shifted[0];
#pragma unroll
    for (int k = 1; k < 6; k++) {
      if (end >= 4 * k + 4) words[k] = shifted[k];
      if (end >= 4 * k) rest = shifted[k];
    }
  }
  if (head) {  // bytes `ahead` to 3 of the first word
    if (ahead & 1) to[0] = (uint8_t)w[0];
    if (ahead < 3) ((uint16_t *)words)[1] = (uint16_t)(shifted[0] >> 16);
  }
  const int bytes = end & 3;
  if (!behind && bytes) {  // the bytes of the last word
    if (bytes > 1) *(uint16_t *)((uint8_t *)words + end - bytes) = (uint16_t)rest;
    if (bytes & 1) ((uint8_t *)words)[end - 1] = (uint8_t)(rest >> 8 * (bytes - 1));
  }
}
