// SPDX-License-Identifier: Apache-2.0
// One thread applies DCT, quantisation and inverse DCT to a block of 8 x 8 samples in registers. The results equal
// those of color/forward_dct.h and decode/inverse_dct.h: a pass is a sum of products that is rounded once, so their
// order is free.
#pragma once
#include "color/forward_dct.h"
#include "color/gpu_jpeg_colors.h"

// The quantiser q of a coefficient.
struct JpegQuantizer {
  float reciprocal;  // slightly above 1 / (8 q)
  uint32_t q;
};

constexpr float kJpegInteger = 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
constexpr int32_t kJpegIntegerBits = 0x4b400000;

// Quotients are at most 1100 / q. Ties round away from zero; all others are at least 1 / 8q from a tie. So any factor
// in (1, 1 + 1 / 8800) is right. This is 1 + 2^-16.
DEVICE JpegQuantizer jpeg_quantizer_of(int32_t q) {
  return {__fdividef(1.0000152587890625f, (float)(8 * q)), (uint32_t)q};
}

// As forward_dct<false> for a row of samples in 8 bytes.
DEVICE void jpeg_forward_row(int32_t *v, uint32_t low, uint32_t high) {
  constexpr int kShift = 13 - 2;
  constexpr int32_t half = 1 << (kShift - 1);
  constexpr int32_t kMean = 8 * 128 * 4;  // samples are shifted by -128, which only changes the mean
  v[0] = dot_bytes(high, 0x04040404, dot_bytes(low, 0x04040404, -kMean));
  v[4] = dot_bytes(high, 0x04fcfc04, dot_bytes(low, 0x04fcfc04, 0));
  const auto odd = [&](int32_t a, int32_t b, int32_t c, int32_t d) {
    int32_t t = dot_halves<false>(halves(a, b), low, half);
    t = dot_halves<true>(halves(c, d), low, t);
    t = dot_halves<false>(halves(-d, -c), high, t);
    return dot_halves<true>(halves(-b, -a), high, t) >> kShift;
  };
  const auto even = [&](int32_t a, int32_t b) {
    int32_t t = dot_halves<false>(halves(a, b), low, half);
    t = dot_halves<true>(halves(-b, -a), low, t);
    t = dot_halves<false>(halves(-a, -b), high, t);
    return dot_halves<true>(halves(b, a), high, t) >> kShift;
  };
  v[1] = odd(11363, 9633, 6437, 2260);
  v[3] = odd(9633, -2259, -11362, -6436);
  v[5] = odd(6437, -11362, 2261, 9633);
  v[7] = odd(2260, -6436, 9633, -11363);
  v[2] = even(10703, 4433);
  v[6] = even(4433, -10704);
}

// As inverse_dct<SHIFT>, in place; adds `more` to all samples before the division.
template <int SHIFT>
DEVICE void jpeg_inverse(int32_t (&v)[8], int32_t more) {
  const int32_t mean = v[0] * 8192 + ((1 << (SHIFT - 1)) + more);
  const int32_t e0 = v[4] * 8192 + mean, e1 = v[4] * -8192 + mean;
  const int32_t a0 = v[2] * 10703 + (v[6] * 4433 + e0), a1 = v[2] * 4433 + (v[6] * -10704 + e1);
  const int32_t a3 = 2 * e0 - a0, a2 = 2 * e1 - a1;

  const int32_t s73 = v[7] + v[3], s51 = v[5] + v[1], both = (s73 + s51) * 9633;
  const int32_t z1 = (v[7] + v[1]) * -7373, z2 = (v[5] + v[3]) * -20995;
  const int32_t z3 = s73 * -16069 + both, z4 = s51 * -3196 + both;
  const int32_t o0 = v[7] * 2446 + z1, o1 = v[5] * 16819 + z2, o2 = v[3] * 25172 + z2, o3 = v[1] * 12299 + z1;

  v[0] = (a0 + o3 + z4) >> SHIFT;
  v[7] = (a0 - o3 - z4) >> SHIFT;
  v[1] = (a1 + o2 + z3) >> SHIFT;
  v[6] = (a1 - o2 - z3) >> SHIFT;
  v[2] = (a2 + o1 + z4) >> SHIFT;
  v[5] = (a2 - o1 - z4) >> SHIFT;
  v[3] = (a3 + o0 + z3) >> SHIFT;
  v[4] = (a3 - o0 - z3) >> SHIFT;
}

// Quantises and dequantises a column of coefficients, which are 8 times those of the standard.
DEVICE void jpeg_quantize_column(int32_t (&v)[8], const JpegQuantizer *quantizers) {
#pragma unroll
  for (int k = 0; k < 8; k++) {
    const float coefficient = __int_as_float(v[k] + kJpegIntegerBits) - kJpegInteger;
    const JpegQuantizer by = quantizers[8 * k];
    // The low half is the quotient, a 16-bit integer; the high half is multiplied by a zero byte.
    v[k] = dot_halves<false>(__float_as_int(__fmaf_rn(coefficient, by.reciprocal, kJpegInteger)), by.q, 0);
  }
}

// Processes a block of samples, stored row after row, and writes it to a plane whose rows are `stride` bytes apart. If
// `luma`, the middle two pairs of each row are swapped: then pixels that are 4 apart lie in one word.
DEVICE void jpeg_block(uint8_t *to, int64_t stride, const uint4 *samples, const JpegQuantizer *quantizers, bool luma) {
  int32_t v[64];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const uint4 rows = samples[i];
    jpeg_forward_row(v + 16 * i, rows.x, rows.y);
    jpeg_forward_row(v + 16 * i + 8, rows.z, rows.w);
  }
#pragma unroll
  for (int x = 0; x < 8; x++) {
    int32_t c[8];
#pragma unroll
    for (int y = 0; y < 8; y++) c[y] = v[8 * y + x];
    forward_dct<true>(c);
    jpeg_quantize_column(c, quantizers + x);
    jpeg_inverse<13 - 2>(c, 0);
#pragma unroll
    for (int y = 0; y < 8; y++) v[8 * y + x] = c[y];
  }
  const uint32_t first = luma ? 0x5410 : 0x3210, second = luma ? 0x7632 : 0x7654;
#pragma unroll
  for (int y = 0; y < 8; y++) {
    int32_t(&r)[8] = *(int32_t(*)[8])(v + 8 * y);
    jpeg_inverse<13 + 2 + 3>(r, 128 << (13 + 2 + 3));
    const uint32_t left = jpeg_word(r[0], r[1], r[2], r[3]), right = jpeg_word(r[4], r[5], r[6], r[7]);
    *(uint2 *)(to + y * stride) = make_uint2(__byte_perm(left, right, first), __byte_perm(left, right, second));
  }
}
