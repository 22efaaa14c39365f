// SPDX-License-Identifier: Apache-2.0
// The forward DCT of ITU-T T.81, A.3.3, by the same algorithm as the inverse in decode/inverse_dct.h. Factors and
// rounding are those of libjpeg's accurate integer method, which makes the coefficients equal to those of its files.
#pragma once
#include "core/tensor.h"

// One dimension in place. Rows come first and keep two more bits, which the pass over columns drops. The resulting
// coefficients are 8 times those of the standard.
template <bool COLUMN>
SHARED void forward_dct(int32_t *v) {
  constexpr int kShift = COLUMN ? 13 + 2 : 13 - 2;
  constexpr int32_t half = 1 << (kShift - 1);
  const int32_t s0 = v[0] + v[7], s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
  const int32_t d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];

  const int32_t e0 = s0 + s3, e1 = s1 + s2, e2 = s1 - s2, e3 = s0 - s3;
  const int32_t even = (e2 + e3) * 4433 + half;  // 0.541196100
  v[0] = COLUMN ? (e0 + e1 + 2) >> 2 : (e0 + e1) * 4;
  v[4] = COLUMN ? (e0 - e1 + 2) >> 2 : (e0 - e1) * 4;
  v[2] = (even + e3 * 6270) >> kShift;   // 0.765366865
  v[6] = (even - e2 * 15137) >> kShift;  // 1.847759065

  const int32_t both = (d3 + d1 + d2 + d0) * 9633 + half;                       // 1.175875602
  const int32_t z1 = (d3 + d0) * -7373, z2 = (d2 + d1) * -20995;                // 0.899976223, 2.562915447
  const int32_t z3 = (d3 + d1) * -16069 + both, z4 = (d2 + d0) * -3196 + both;  // 1.961570560, 0.390180644
  v[7] = (d3 * 2446 + z1 + z3) >> kShift;                                       // 0.298631336
  v[5] = (d2 * 16819 + z2 + z4) >> kShift;                                      // 2.053119869
  v[3] = (d1 * 25172 + z2 + z3) >> kShift;                                      // 3.072711026
  v[1] = (d0 * 12299 + z1 + z4) >> kShift;                                      // 1.501321110
}
