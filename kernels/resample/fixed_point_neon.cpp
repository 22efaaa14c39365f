// SPDX-License-Identifier: Apache-2.0
// The fixed-point loops for NEON, whose multiply-add has four 16-bit inputs and 32-bit results.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstring>

#include "resample/fixed_point.h"

namespace {

constexpr int kBlock = 16;

struct Rows {
  static constexpr int kLeast = kBlock;

  static void copy_row(int16_t *out, const uint8_t *row, int n) {
    const uint16x8_t start = vdupq_n_u16(0x8000);
    for (int i = 0;; i = std::min(i + kBlock, n - kBlock)) {
      const uint8x16_t x = vld1q_u8(row + i);
      vst1q_u16((uint16_t *)out + i, vaddq_u16(vshll_n_u8(vget_low_u8(x), 8), start));
      vst1q_u16((uint16_t *)out + i + 8, vaddq_u16(vshll_high_n_u8(x, 8), start));
      if (i == n - kBlock) return;
    }
  }

  // Combines rows in blocks of kVectors vectors; the last block overlaps the one before. A weight is split into bytes:
  // products with the upper one are whole, and those with the lower one are truncated, as the whole product would be.
  // kTaps: 0 if not known at compile time.
  template <int kTaps, int kVectors>
  static void combine(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
    constexpr int kStep = kBlock * kVectors;
    const int count = kTaps ? kTaps : taps;
    const uint16x8_t start = vdupq_n_u16((uint16_t)(0x8000 + count / 2));
    for (int i = 0;; i = std::min(i + kStep, n - kStep)) {
      uint16x8_t low[kVectors], high[kVectors];
      for (int v = 0; v < kVectors; v++) low[v] = high[v] = start;
      for (int t = 0; t < count; t++) {
        const uint8x16x2_t weight = vld2q_dup_u8((const uint8_t *)(weights + t));
        const uint8x16_t a = weight.val[1], b = weight.val[0];
        const uint8_t *row = rows[t] + i;
        for (int v = 0; v < kVectors; v++) {
          const uint8x16_t x = vld1q_u8(row + kBlock * v);
          low[v] = vmlal_u8(low[v], vget_low_u8(x), vget_low_u8(a)), high[v] = vmlal_high_u8(high[v], x, a);
          low[v] = vsraq_n_u16(low[v], vmull_u8(vget_low_u8(x), vget_low_u8(b)), 8);
          high[v] = vsraq_n_u16(high[v], vmull_high_u8(x, b), 8);
        }
      }
      uint16_t *to = (uint16_t *)out + i;
      for (int v = 0; v < kVectors; v++) vst1q_u16(to + kBlock * v, low[v]), vst1q_u16(to + kBlock * v + 8, high[v]);
      if (i == n - kStep) return;
    }
  }

  template <int kTaps>
  static void combine(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
    (n < 4 * kBlock ? combine<kTaps, 1> : combine<kTaps, 4>)(out, rows, weights, taps, n);
  }
};

// Adds sixteen bytes times a weight to four vectors of sums.
struct Sums {
  int32x4_t s[4];
  void add(uint8x16_t x, int16x4_t weight) {
    const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x)));
    const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(x));
    s[0] = vmlal_lane_s16(s[0], vget_low_s16(low), weight, 0), s[1] = vmlal_high_lane_s16(s[1], low, weight, 0);
    s[2] = vmlal_lane_s16(s[2], vget_low_s16(high), weight, 0), s[3] = vmlal_high_lane_s16(s[3], high, weight, 0);
  }
};

template <int kVectors>
void combine_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n, int shift) {
  constexpr int kStep = kBlock * kVectors;
  const int32x4_t half = vdupq_n_s32(1 << (shift - 1)), right = vdupq_n_s32(-shift);
  for (int i = 0;; i = std::min(i + kStep, n - kStep)) {
    Sums sum[kVectors];
    for (Sums &s : sum) s = {{half, half, half, half}};
    for (int t = 0; t < taps; t++) {
      const int16x4_t weight = vdup_n_s16(weights[t]);
      const uint8_t *row = rows[t] + i;
      for (int v = 0; v < kVectors; v++) sum[v].add(vld1q_u8(row + kBlock * v), weight);
    }
    int16_t *to = out + i;
    for (Sums &s : sum) {
      for (int32x4_t &four : s.s) four = vshlq_s32(four, right);
      vst1q_s16(to, vqmovn_high_s32(vqmovn_s32(s.s[0]), s.s[1]));
      vst1q_s16(to + 8, vqmovn_high_s32(vqmovn_s32(s.s[2]), s.s[3]));
      to += kBlock;
    }
    if (i == n - kStep) return;
  }
}

void vertical_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n, int shift) {
  auto loop = n < kBlock ? kFixedPlain.vertical_signed : n < 4 * kBlock ? combine_signed<1> : combine_signed<4>;
  loop(out, rows, weights, taps, n, shift);
}

// In group_base: begin of each pixel's input, in bytes. In group_weights: its weights, padded with zeros to a multiple
// of four. Both are padded to a multiple of eight pixels, and the weights by four, as vectors of eight are loaded.
constexpr int kPixels = 8;

int padded_taps(const Taps &t) { return (t.k + 3) & ~3; }

void prepare(Taps &t, int channels) {
  make_fixed(t);
  if (t.prepared_for == 1 && t.group_channels == channels) return;
  t.prepared_for = 1;
  t.group_channels = channels;
  const int padded = (t.n + kPixels - 1) & ~(kPixels - 1), each = padded_taps(t);
  t.group_base.resize(padded);
  t.group_weights.assign((size_t)padded * each + 4, 0);
  for (int j = 0; j < padded; j++) {
    const int from = std::min(j, t.n - 1);
    t.group_base[j] = (t.first[from] - t.lo) * channels * (int)sizeof(int16_t);
    const int16_t *w = t.fixed.data() + (size_t)from * t.stride;
    std::copy(w, w + t.k, t.group_weights.data() + (size_t)j * each);
  }
}

inline const int16_t *input(const int16_t *row, int32_t base) { return (const int16_t *)((const char *)row + base); }

// Converts eight sums to bytes. kUpper: the shift is at least 16, so the upper halves are enough.
template <bool kUpper>
inline uint8x8_t finish(int32x4_t a, int32x4_t b, int shift) {
  if (kUpper) {
    const int16x8_t upper = vuzp2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    return vqmovun_s16(vshlq_s16(upper, vdupq_n_s16((int16_t)(16 - shift))));
  }
  const int32x4_t right = vdupq_n_s32(-shift);
  return vqmovun_s16(vqmovn_high_s32(vqmovn_s32(vshlq_s32(a, right)), vshlq_s32(b, right)));
}

// Taps are in lanes: eight or four taps of C channels are deinterleaved while they are loaded, and multiplied by their
// weights. The four lanes of each sum are added up for four pixels together.
template <int C>
inline void four_pixels(const int16_t *row, const int32_t *base, const int16_t *w, int taps, int32x4_t total[C]) {
  int32x4_t sum[C][4];
#pragma GCC unroll 4  // otherwise the sums are stored and loaded again
  for (int j = 0; j < 4; j++, w += taps) {
    const int16_t *p = input(row, base[j]);
    int k = 0;
    for (int c = 0; c < C; c++) sum[c][j] = vdupq_n_s32(0);
    for (; k + 8 <= taps; k += 8, p += 8 * C) {
      const int16x8_t weights = vld1q_s16(w + k);
      int16x8_t x[C];
      if constexpr (C == 3) {
        const int16x8x3_t all = vld3q_s16(p);
        for (int c = 0; c < C; c++) x[c] = all.val[c];
      } else {
        x[0] = vld1q_s16(p);
      }
      for (int c = 0; c < C; c++) {
        sum[c][j] = vmlal_s16(sum[c][j], vget_low_s16(x[c]), vget_low_s16(weights));
        sum[c][j] = vmlal_high_s16(sum[c][j], x[c], weights);
      }
    }
    if (k < taps) {
      const int16x4_t weights = vld1_s16(w + k);
      if constexpr (C == 3) {
        const int16x4x3_t all = vld3_s16(p);
        for (int c = 0; c < C; c++) sum[c][j] = vmlal_s16(sum[c][j], all.val[c], weights);
      } else {
        sum[0][j] = vmlal_s16(sum[0][j], vld1_s16(p), weights);
      }
    }
  }
  for (int c = 0; c < C; c++) total[c] = vpaddq_s32(vpaddq_s32(sum[c][0], sum[c][1]), vpaddq_s32(sum[c][2], sum[c][3]));
}

// kTaps: 0 if not known at compile time.
template <int C, int kTaps, bool kUpper>
void by_taps(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  const int taps = kTaps ? kTaps : padded_taps(t), shift = row_shift(format);
  const int32x4_t bias = vdupq_n_s32(row_bias(format));
  const int32_t *base = t.group_base.data();
  const int16_t *w = t.group_weights.data();
  for (int left = t.n; left > 0; left -= kPixels, out += kPixels * C, base += kPixels, w += kPixels * taps) {
    int32x4_t a[C], b[C];
    four_pixels<C>(row, base, w, taps, a);
    // Only then the others: the compiler would mix both, for which there are not enough registers.
    if (C == 3) asm("" : "+r"(row) : "w"(a[0]), "w"(a[1]), "w"(a[C - 1]));
    four_pixels<C>(row, base + 4, w + 4 * taps, taps, b);
    for (int c = 0; c < C; c++) a[c] = vaddq_s32(a[c], bias), b[c] = vaddq_s32(b[c], bias);
    uint8_t end[kPixels * C], *to = left >= kPixels ? out : end;
    if constexpr (C == 3) {
      uint8x8x3_t pixels;
      for (int c = 0; c < C; c++) pixels.val[c] = finish<kUpper>(a[c], b[c], shift);
      vst3_u8(to, pixels);
    } else {
      vst1_u8(to, finish<kUpper>(a[0], b[0], shift));
    }
    if (to == end) memcpy(out, end, (size_t)left * C);
  }
}

template <int C, bool kUpper>
void by_taps(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  switch (padded_taps(t)) {
    case 4:
      return by_taps<C, 4, kUpper>(out, row, t, format);
    case 8:
      return by_taps<C, 8, kUpper>(out, row, t, format);
    default:
      return by_taps<C, 0, kUpper>(out, row, t, format);
  }
}

// Channels are in lanes: two taps of a pixel of 3 or 4 channels, times two lanes of weights.
template <int C, int kLane>
inline int32x4_t add_pair(int32x4_t sum, const int16_t *p, int16x8_t w) {
  const int16x8_t x = vld1q_s16(p);
  sum = vmlal_laneq_s16(sum, vget_low_s16(x), w, kLane);
  if (C == 4) return vmlal_high_laneq_s16(sum, x, w, kLane + 1);
  return vmlal_laneq_s16(sum, vld1_s16(p + C), w, kLane + 1);
}

// kPairs: 0 if not known at compile time.
template <int C, int kPairs, bool kUpper>
void by_channels(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  const int taps = kPairs ? (kPairs + 1) / 2 * 4 : padded_taps(t), total = t.n * C, shift = row_shift(format),
            pairs = kPairs ? kPairs : (t.k + 1) / 2;
  const int32x4_t bias = vdupq_n_s32(row_bias(format));
  const uint8x16_t squeeze = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15};
  const int32_t *base = t.group_base.data();
  const int16_t *w = t.group_weights.data();
  for (int i = 0; i < total; i += 4 * C, base += 4) {
    int32x4_t s[4];
    if constexpr (kPairs == 1 || kPairs == 2) {  // taps are 4: the weights of two pixels in a vector
      for (int j = 0; j < 4; j += 2, w += 8) {
        const int16_t *p = input(row, base[j]), *q = input(row, base[j + 1]);
        const int16x8_t both = vld1q_s16(w);
        s[j] = add_pair<C, 0>(bias, p, both), s[j + 1] = add_pair<C, 4>(bias, q, both);
        if (kPairs == 2)
          s[j] = add_pair<C, 2>(s[j], p + 2 * C, both), s[j + 1] = add_pair<C, 6>(s[j + 1], q + 2 * C, both);
      }
    } else {
      for (int j = 0; j < 4; j++, w += taps) {
        const int16_t *p = input(row, base[j]);
        s[j] = bias;
        int k = 0;
        for (; k + 3 < pairs; k += 4, p += 8 * C) {
          const int16x8_t eight = vld1q_s16(w + 2 * k);
          s[j] = add_pair<C, 2>(add_pair<C, 0>(s[j], p, eight), p + 2 * C, eight);
          s[j] = add_pair<C, 6>(add_pair<C, 4>(s[j], p + 4 * C, eight), p + 6 * C, eight);
        }
        if (k < pairs) {
          const int16x8_t some = vld1q_s16(w + 2 * k);
          s[j] = add_pair<C, 0>(s[j], p, some);
          if (k + 1 < pairs) s[j] = add_pair<C, 2>(s[j], p + 2 * C, some);
          if (k + 2 < pairs) s[j] = add_pair<C, 4>(s[j], p + 4 * C, some);
        }
      }
    }
    uint8x16_t bytes = vcombine_u8(finish<kUpper>(s[0], s[1], shift), finish<kUpper>(s[2], s[3], shift));
    if (C == 3) bytes = vqtbl1q_u8(bytes, squeeze);
    if (i + 16 <= total) {
      vst1q_u8(out + i, bytes);  // excess bytes are overwritten by the next step
    } else {
      uint8_t end[16];
      vst1q_u8(end, bytes);
      memcpy(out + i, end, std::min(total - i, 4 * C));
    }
  }
}

template <bool kUpper>
void horizontal(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  switch (channels) {
    case 1:
      return by_taps<1, kUpper>(out, row, t, format);
    case 3:
      return (t.k <= 2 ? by_channels<3, 1, kUpper> : by_taps<3, kUpper>)(out, row, t, format);
    case 4:
      return (t.k <= 2   ? by_channels<4, 1, kUpper>
              : t.k <= 4 ? by_channels<4, 2, kUpper>
              : t.k <= 6 ? by_channels<4, 3, kUpper>
                         : by_channels<4, 0, kUpper>)(out, row, t, format);
    default:
      return kFixedPlain.horizontal(out, row, t, channels, format);
  }
}

void horizontal(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  (row_shift(format) >= 16 ? horizontal<true> : horizontal<false>)(out, row, t, channels, format);
}

// For the 22-bit weights of exact.cpp. Sums with their upper parts have 16 bits: only the lower 16 bits count, as they
// are shifted up by 16 in the end.
void exact_rows(uint8_t *out, const uint8_t *in, int64_t pitch, const int32_t *weights, int taps, int n, int bits) {
  const int32x4_t half = vdupq_n_s32(1 << (bits - 1)), right = vdupq_n_s32(-bits);
  for (int i = 0;; i = std::min(i + kBlock, n - kBlock)) {
    Sums sum = {{half, half, half, half}};
    uint16x8_t low = vdupq_n_u16(0), high = low;
    for (int t = 0; t < taps; t++) {
      const uint8x16_t x = vld1q_u8(in + t * pitch + i);
      const int16_t lower = (int16_t)weights[t];
      const uint16_t upper = (uint16_t)((weights[t] - lower) >> 16);
      sum.add(x, vdup_n_s16(lower));
      low = vmlaq_n_u16(low, vmovl_u8(vget_low_u8(x)), upper);
      high = vmlaq_n_u16(high, vmovl_high_u8(x), upper);
    }
    const uint16x4_t parts[4] = {vget_low_u16(low), vget_high_u16(low), vget_low_u16(high), vget_high_u16(high)};
    for (int k = 0; k < 4; k++)
      sum.s[k] = vshlq_s32(vaddq_s32(sum.s[k], vreinterpretq_s32_u32(vshll_n_u16(parts[k], 16))), right);
    const int16x8_t a = vqmovn_high_s32(vqmovn_s32(sum.s[0]), sum.s[1]);
    const int16x8_t b = vqmovn_high_s32(vqmovn_s32(sum.s[2]), sum.s[3]);
    vst1q_u8(out + i, vqmovun_high_s16(vqmovun_s16(a), b));
    if (i == n - kBlock) return;
  }
}

}  // namespace

const FixedPoint kFixedNeon = {vertical_by<Rows>, vertical_signed, horizontal, prepare, exact_rows, nullptr};
#endif
