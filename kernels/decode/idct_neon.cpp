// SPDX-License-Identifier: Apache-2.0
// The inverse DCT for NEON: a register holds one value of each of eight columns, as 16 bits; a multiply-add takes half
// of them and widens them.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstring>

#include "decode/idct.h"

namespace {

constexpr int16_t fixed(double x) { return (int16_t)(x * 8192 + (x < 0 ? -0.5 : 0.5)); }

// One value of eight columns, as 32 bits.
struct Wide {
  int32x4_t low, high;
};

inline Wide operator+(Wide a, Wide b) { return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)}; }
inline Wide operator-(Wide a, Wide b) { return {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)}; }

// Factors lie in the lanes of a register.
template <int kLane>
inline Wide times(int16x8_t x, int16x8_t factors) {
  return {vmull_laneq_s16(vget_low_s16(x), factors, kLane), vmull_high_laneq_s16(x, factors, kLane)};
}
template <int kLane>
inline Wide plus(Wide sum, int16x8_t x, int16x8_t factors) {
  return {vmlal_laneq_s16(sum.low, vget_low_s16(x), factors, kLane), vmlal_high_laneq_s16(sum.high, x, factors, kLane)};
}
template <int kShift>
inline Wide shifted_left(int16x8_t x, int32_t more) {
  const int32x4_t added = vdupq_n_s32(more);
  return {vaddq_s32(vshll_n_s16(vget_low_s16(x), kShift), added), vaddq_s32(vshll_high_n_s16(x, kShift), added)};
}

// Shifted right, with saturation.
template <int kShift>
inline int16x8_t narrow(Wide x) {
  return vqshrn_high_n_s32(vqshrn_n_s32(x.low, kShift), x.high, kShift);
}
// The upper half of a sum and of a difference.
inline int16x8_t upper_sum(Wide a, Wide b) { return vaddhn_high_s32(vaddhn_s32(a.low, b.low), a.high, b.high); }
inline int16x8_t upper_difference(Wide a, Wide b) { return vsubhn_high_s32(vsubhn_s32(a.low, b.low), a.high, b.high); }

constexpr int16_t k0541 = fixed(0.541196100), k0765 = fixed(0.765366865), k1847 = fixed(1.847759065),
                  k1175 = fixed(1.175875602), k0298 = fixed(0.298631336), k2053 = fixed(2.053119869),
                  k3072 = fixed(3.072711026), k1501 = fixed(1.501321110), k0899 = fixed(0.899976223),
                  k2562 = fixed(2.562915447), k1961 = fixed(1.961570560), k0390 = fixed(0.390180644);
alignas(16) constexpr int16_t kEven[8] = {k0541, k0541 - k1847, k0541 + k0765, k1175 - k1961, k1175, k1175 - k0390};
alignas(16) constexpr int16_t kOdd[8] = {k1501 - k0899, -k0899, k3072 - k2562, -k2562, k2053 - k2562, k0298 - k0899};

// Result i is even[i] + odd[i], result 7 - i their difference. They include half of what a shift by kShift removes.
template <int kShift>
inline void transform(const int16x8_t x[8], Wide even[4], Wide odd[4]) {
  const int16x8_t f = vld1q_s16(kEven), g = vld1q_s16(kOdd);
  const Wide e0 = shifted_left<13>(vaddq_s16(x[0], x[4]), 1 << (kShift - 1));
  const Wide e1 = shifted_left<13>(vsubq_s16(x[0], x[4]), 1 << (kShift - 1));
  const Wide e2 = plus<1>(times<0>(x[2], f), x[6], f), e3 = plus<0>(times<2>(x[2], f), x[6], f);
  even[0] = e0 + e3, even[1] = e1 + e2, even[2] = e1 - e2, even[3] = e0 - e3;
  const int16x8_t s37 = vaddq_s16(x[3], x[7]), s15 = vaddq_s16(x[1], x[5]);
  const Wide a = plus<4>(times<3>(s37, f), s15, f), b = plus<5>(times<4>(s37, f), s15, f);
  odd[0] = plus<1>(plus<0>(b, x[1], g), x[7], g);
  odd[1] = plus<3>(plus<2>(a, x[3], g), x[5], g);
  odd[2] = plus<4>(plus<3>(b, x[3], g), x[5], g);
  odd[3] = plus<5>(plus<1>(a, x[1], g), x[7], g);
}

inline void clear(int16_t *block) {
  for (int i = 0; i < 8; i++) vst1q_s16(block + 8 * i, vdupq_n_s16(0));
}

inline bool all_zero(int16x8_t x) { return vmaxvq_u32(vreinterpretq_u32_s16(x)) == 0; }

// Exchange pairs of 16 bits, then pairs of those.
inline int16x8_t even16(int16x8_t a, int16x8_t b) { return vtrn1q_s16(a, b); }
inline int16x8_t odd16(int16x8_t a, int16x8_t b) { return vtrn2q_s16(a, b); }
inline int16x8_t even32(int16x8_t a, int16x8_t b) {
  return vreinterpretq_s16_s32(vtrn1q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}
inline int16x8_t odd32(int16x8_t a, int16x8_t b) {
  return vreinterpretq_s16_s32(vtrn2q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}
inline int16x8_t lower_halves(int16x8_t a, int16x8_t b) {
  return vreinterpretq_s16_s64(vtrn1q_s64(vreinterpretq_s64_s16(a), vreinterpretq_s64_s16(b)));
}
inline int16x8_t upper_halves(int16x8_t a, int16x8_t b) {
  return vreinterpretq_s16_s64(vtrn2q_s64(vreinterpretq_s64_s16(a), vreinterpretq_s64_s16(b)));
}

inline void transpose(int16x8_t r[8]) {
  int16x8_t t[8], u[8];
  for (int i = 0; i < 8; i += 2) t[i] = even16(r[i], r[i + 1]), t[i + 1] = odd16(r[i], r[i + 1]);
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) u[i + k] = even32(t[i + k], t[i + k + 2]), u[i + k + 2] = odd32(t[i + k], t[i + k + 2]);
  for (int i = 0; i < 4; i++) r[i] = lower_halves(u[i], u[i + 4]), r[i + 4] = upper_halves(u[i], u[i + 4]);
}

}  // namespace

void inverse_dct_8x8_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  int16x8_t x[8];
  for (int i = 0; i < 8; i++) x[i] = vld1q_s16(block + 8 * i);
  clear(block);
  auto dequantise = [&](int i) { x[i] = vmulq_s16(x[i], vreinterpretq_s16_u16(vld1q_u16(quantisers + 8 * i))); };
  int16x8_t any = vorrq_s16(x[1], x[2]);
  for (int i = 3; i < 8; i++) any = vorrq_s16(any, x[i]);
  Wide even[4], odd[4];
  dequantise(0);
  if (all_zero(any)) {
    // Only the first row is not zero: all rows are equal. Here libjpeg does not saturate.
    const int16x8_t row = vshlq_n_s16(x[0], 2);
    x[0] = vdupq_laneq_s16(row, 0), x[1] = vdupq_laneq_s16(row, 1), x[2] = vdupq_laneq_s16(row, 2);
    x[3] = vdupq_laneq_s16(row, 3), x[4] = vdupq_laneq_s16(row, 4), x[5] = vdupq_laneq_s16(row, 5);
    x[6] = vdupq_laneq_s16(row, 6), x[7] = vdupq_laneq_s16(row, 7);
  } else {
    for (int i = 1; i < 8; i++) dequantise(i);
    transform<11>(x, even, odd);
    for (int i = 0; i < 4; i++) x[i] = narrow<11>(even[i] + odd[i]), x[7 - i] = narrow<11>(even[i] - odd[i]);
    transpose(x);
  }
  transform<18>(x, even, odd);
  for (int i = 0; i < 4; i++) x[i] = upper_sum(even[i], odd[i]), x[7 - i] = upper_difference(even[i], odd[i]);
  // Column j next to column j + 4 as bytes, transposed.
  uint8x16_t c[4];
  for (int i = 0; i < 4; i++) {
    const int8x16_t both = vqshrn_high_n_s16(vqshrn_n_s16(x[i], 2), x[i + 4], 2);
    c[i] = veorq_u8(vreinterpretq_u8_s8(both), vdupq_n_u8(0x80));
  }
  auto halves = [](uint8x16_t a) { return vreinterpretq_s16_u8(a); };
  const int16x8_t t0 = halves(vtrn1q_u8(c[0], c[1])), t1 = halves(vtrn2q_u8(c[0], c[1]));
  const int16x8_t t2 = halves(vtrn1q_u8(c[2], c[3])), t3 = halves(vtrn2q_u8(c[2], c[3]));
  // Row y next to row y + 4, in alternating words.
  const uint32x4_t r04 = vreinterpretq_u32_s16(even16(t0, t2)), r15 = vreinterpretq_u32_s16(even16(t1, t3));
  const uint32x4_t r26 = vreinterpretq_u32_s16(odd16(t0, t2)), r37 = vreinterpretq_u32_s16(odd16(t1, t3));
  auto store = [&](int y, uint32x4_t two) {
    vst1q_lane_u64((uint64_t *)(out + y * stride), vreinterpretq_u64_u32(two), 0);
    vst1q_lane_u64((uint64_t *)(out + (y + 1) * stride), vreinterpretq_u64_u32(two), 1);
  };
  store(0, vuzp1q_u32(r04, r15));
  store(2, vuzp1q_u32(r26, r37));
  store(4, vuzp2q_u32(r04, r15));
  store(6, vuzp2q_u32(r26, r37));
}

namespace {

// The halves of a block's transform (see idct.cpp), of eight columns or four rows.
alignas(16) constexpr int16_t kHalf[8] = {fixed(1.061594337),  -fixed(2.172734803), fixed(1.451774981),
                                          -fixed(0.211164243), fixed(2.562915447),  fixed(0.899976223),
                                          -fixed(0.601344887), -fixed(0.509795579)};
alignas(16) constexpr int16_t kRest[8] = {fixed(1.847759065),  -fixed(0.765366865), fixed(3.624509785),
                                          -fixed(1.272758580), fixed(0.850430095),  -fixed(0.720959822)};

template <int kLane>
inline int32x4_t plus(int32x4_t sum, int16x4_t x, int16x8_t factors) {
  return vmlal_laneq_s16(sum, x, factors, kLane);
}

}  // namespace

void inverse_dct_4x4_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  int16x8_t x[8];
  for (int i = 0; i < 8; i++) x[i] = vld1q_s16(block + 8 * i);  // the fifth row does not contribute
  clear(block);
  int16x8_t any = vorrq_s16(vorrq_s16(x[1], x[2]), x[3]);
  any = vorrq_s16(vorrq_s16(any, x[5]), vorrq_s16(x[6], x[7]));
  for (int i = 0; i < 8; i++) x[i] = vmulq_s16(x[i], vreinterpretq_s16_u16(vld1q_u16(quantisers + 8 * i)));
  const int16x8_t f = vld1q_s16(kHalf), g = vld1q_s16(kRest);
  int16x8_t r[4];
  if (all_zero(any)) {
    r[0] = r[1] = r[2] = r[3] = vshlq_n_s16(x[0], 2);
  } else {
    const Wide first = shifted_left<14>(x[0], 1 << 11), e = plus<1>(times<0>(x[2], g), x[6], g);
    const Wide inner = plus<3>(plus<2>(plus<1>(times<0>(x[1], f), x[3], f), x[5], f), x[7], f);
    const Wide outer = plus<7>(plus<6>(plus<5>(times<4>(x[1], f), x[3], f), x[5], f), x[7], f);
    const Wide sum = first + e, difference = first - e;
    r[0] = narrow<12>(sum + outer), r[1] = narrow<12>(difference + inner);
    r[2] = narrow<12>(difference - inner), r[3] = narrow<12>(sum - outer);
  }
  // Transposed: column j of four rows next to column j + 4.
  const int16x8_t e01 = even16(r[0], r[1]), o01 = odd16(r[0], r[1]), e23 = even16(r[2], r[3]), o23 = odd16(r[2], r[3]);
  const int16x8_t c04 = even32(e01, e23), c26 = odd32(e01, e23), c15 = even32(o01, o23), c37 = odd32(o01, o23);
  const int16x4_t x1 = vget_low_s16(c15), x3 = vget_low_s16(c37), x5 = vget_high_s16(c15), x7 = vget_high_s16(c37);
  const int32x4_t first = vaddq_s32(vshll_n_s16(vget_low_s16(c04), 14), vdupq_n_s32(1 << 18));
  const int32x4_t e = plus<1>(vmull_laneq_s16(vget_low_s16(c26), g, 0), vget_high_s16(c26), g);
  const int32x4_t inner = plus<3>(plus<2>(plus<1>(vmull_laneq_s16(x1, f, 0), x3, f), x5, f), x7, f);
  const int32x4_t outer = plus<7>(plus<6>(plus<5>(vmull_laneq_s16(x1, f, 4), x3, f), x5, f), x7, f);
  const int32x4_t sum = vaddq_s32(first, e), difference = vsubq_s32(first, e);
  const int16x8_t left = vaddhn_high_s32(vaddhn_s32(sum, outer), difference, inner);
  const int16x8_t right = vsubhn_high_s32(vsubhn_s32(difference, inner), sum, outer);
  const int8x16_t columns = vqshrn_high_n_s16(vqshrn_n_s16(left, 3), right, 3);
  const uint8x16_t turn = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const uint32x4_t rows =
      vreinterpretq_u32_u8(vqtbl1q_u8(veorq_u8(vreinterpretq_u8_s8(columns), vdupq_n_u8(0x80)), turn));
  vst1q_lane_u32((uint32_t *)out, rows, 0);
  vst1q_lane_u32((uint32_t *)(out + stride), rows, 1);
  vst1q_lane_u32((uint32_t *)(out + 2 * stride), rows, 2);
  vst1q_lane_u32((uint32_t *)(out + 3 * stride), rows, 3);
}

void inverse_dct_2x2_neon(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  auto row = [&](int i) {
    return vmulq_s16(vld1q_s16(block + 8 * i), vreinterpretq_s16_u16(vld1q_u16(quantisers + 8 * i)));
  };
  const int16x8_t g = vld1q_s16(kRest), x0 = row(0), x1 = row(1), x3 = row(3), x5 = row(5), x7 = row(7);
  clear(block);
  const Wide first = shifted_left<15>(x0, 1 << 12);
  const Wide odd = plus<5>(plus<4>(plus<3>(times<2>(x1, g), x3, g), x5, g), x7, g);
  const Wide both[2] = {first + odd, first - odd};
  for (int y = 0; y < 2; y++) {
    int16_t c[8];
    vst1q_s16(c, narrow<13>(both[y]));
    // The first column keeps its width.
    const uint32_t sum = (uint32_t)(vgetq_lane_s32(both[y].low, 0) >> 13) << 15;
    const uint32_t rest = (uint32_t)(c[1] * kRest[2]) + (uint32_t)(c[3] * kRest[3]) + (uint32_t)(c[5] * kRest[4]) +
                          (uint32_t)(c[7] * kRest[5]);
    const int32_t samples[2] = {(int32_t)(sum + rest + (1u << 19)) >> 20, (int32_t)(sum - rest + (1u << 19)) >> 20};
    for (int x = 0; x < 2; x++) {
      const int sample = samples[x] + 128;
      out[y * stride + x] = (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
    }
  }
}
#endif
