// SPDX-License-Identifier: Apache-2.0
// uint8 images in fixed point: for each output row, its input rows are combined into one row of int16, which is then
// resampled along the row. All instruction sets compute the same bits.
#pragma once
#include <cstdint>

#include "resample/taps.h"

// Format of the int16 row. OFFSET_Q8, for filters without negative weights: value * 256 - 32768, rounded down per tap
// and corrected by half a step per tap. SIGNED_Q6, for the others: value * 64, with room for overshoot. Numbers from
// FIRST_WHOLE on: whole pixels, and weights with this number of bits (see resample/exact.h).
enum RowFormat : int32_t { OFFSET_Q8, SIGNED_Q6, FIRST_WHOLE };

// More taps would lose precision in 16 bits.
constexpr int kMostFixedTaps = 64;

struct FixedPoint {
  // out[i] = sum of weights[t] / 2^16 * rows[t][i], in OFFSET_Q8. (A weight of 1 is written as 0; then there is one
  // tap.)
  void (*vertical)(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n);
  // The same with signed weights: the sum divided by 2^shift and rounded.
  void (*vertical_signed)(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n, int shift);
  // Writes the output row; `row` starts with input sample t.lo and has kRowMargin readable elements after its end.
  void (*horizontal)(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format);
  // Prepares t for `horizontal`.
  void (*prepare)(Taps &t, int channels);
  // For weights of more than 16 bits (see resample/exact.cpp); may be null. n (at least 32) elements of rows `pitch`
  // bytes apart; the pixels of a row of four channels.
  void (*exact_rows)(uint8_t *out, const uint8_t *in, int64_t pitch, const int32_t *weights, int taps, int n, int bits);
  void (*exact_pixels)(uint8_t *out, const uint8_t *row, Taps &t);
};

#if defined(__x86_64__)
void exact_rows_avx2(uint8_t *out, const uint8_t *in, int64_t pitch, const int32_t *weights, int taps, int n, int bits);
void exact_pixels_avx2(uint8_t *out, const uint8_t *row, Taps &t);
#endif

constexpr int kRowMargin = 64;
constexpr int kToQ6 = kWeightBits - 6;  // shift from sums of weights to SIGNED_Q6

extern const FixedPoint kFixedPlain;
#if defined(__x86_64__)
extern const FixedPoint kFixedAvx512, kFixedAvx2;
#elif defined(__aarch64__)
extern const FixedPoint kFixedNeon;
#endif

// FixedPoint::vertical with an instruction set's `Rows`: at least kLeast elements by copy_row(out, row, n) or by
// combine<kTaps>(out, rows, weights, taps, n). kTaps is 0 if not known at compile time.
template <class Rows>
void vertical_by(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
  if (n < Rows::kLeast) return kFixedPlain.vertical(out, rows, weights, taps, n);
  switch (taps) {
    case 1:
      return Rows::copy_row(out, rows[0], n);
    case 2:
      return Rows::template combine<2>(out, rows, weights, taps, n);
    case 3:
      return Rows::template combine<3>(out, rows, weights, taps, n);
    case 4:
      return Rows::template combine<4>(out, rows, weights, taps, n);
    default:
      return Rows::template combine<0>(out, rows, weights, taps, n);
  }
}

// The fastest implementation for this processor.
const FixedPoint &fixed_point();

constexpr int row_shift(RowFormat f) { return f >= FIRST_WHOLE ? (int)f : kWeightBits + (f == OFFSET_Q8 ? 8 : 6); }
// Added before the shift: one half, and the offset of OFFSET_Q8.
constexpr int row_bias(RowFormat f) {
  return (1 << (row_shift(f) - 1)) + (f == OFFSET_Q8 ? 1 << (15 + kWeightBits) : 0);
}
