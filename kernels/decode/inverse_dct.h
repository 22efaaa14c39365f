// SPDX-License-Identifier: Apache-2.0
// The inverse DCT of ITU-T T.81, A.3.3, as the 11-multiplication algorithm of C. Loeffler, A. Ligtenberg and G.
// Moschytz (ICASSP 1989) in 13-bit fixed point. Factors and rounding are those of libjpeg's accurate integer method, so
// pixels are equal.
#pragma once
#include "core/tensor.h"

// One dimension in place: v holds coefficients and becomes samples * sqrt(8), divided by 2^shift and rounded.
template <int shift>
SHARED void inverse_dct(int32_t *v) {
  constexpr int kBits = 13;
  constexpr int32_t half = 1 << (shift - 1);
  const int32_t even = (v[2] + v[6]) * 4433;                        // 0.541196100
  const int32_t e2 = even - v[6] * 15137, e3 = even + v[2] * 6270;  // 1.847759065, 0.765366865
  const int32_t e0 = (v[0] + v[4]) << kBits, e1 = (v[0] - v[4]) << kBits;
  const int32_t a0 = e0 + e3 + half, a3 = e0 - e3 + half, a1 = e1 + e2 + half, a2 = e1 - e2 + half;

  const int32_t both = (v[7] + v[3] + v[5] + v[1]) * 9633;                              // 1.175875602
  const int32_t z1 = (v[7] + v[1]) * -7373, z2 = (v[5] + v[3]) * -20995;                // 0.899976223, 2.562915447
  const int32_t z3 = (v[7] + v[3]) * -16069 + both, z4 = (v[5] + v[1]) * -3196 + both;  // 1.961570560, 0.390180644
  const int32_t o0 = v[7] * 2446 + z1 + z3, o1 = v[5] * 16819 + z2 + z4;                // 0.298631336, 2.053119869
  const int32_t o2 = v[3] * 25172 + z2 + z3, o3 = v[1] * 12299 + z1 + z4;               // 3.072711026, 1.501321110

  v[0] = (a0 + o3) >> shift;
  v[7] = (a0 - o3) >> shift;
  v[1] = (a1 + o2) >> shift;
  v[6] = (a1 - o2) >> shift;
  v[2] = (a2 + o1) >> shift;
  v[5] = (a2 - o1) >> shift;
  v[3] = (a3 + o0) >> shift;
  v[4] = (a3 - o0) >> shift;
}

// Columns first, then rows: two more bits are kept in between, and the rows' pass divides by 8.
SHARED void inverse_dct_column(int32_t *v) { inverse_dct<13 - 2>(v); }
SHARED void inverse_dct_row(int32_t *v) { inverse_dct<13 + 2 + 3>(v); }

// Converts a row's result.
SHARED uint8_t dct_sample(int32_t v) {
  v += 128;
  return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}
