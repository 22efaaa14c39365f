// SPDX-License-Identifier: Apache-2.0
#include "decode/idct.h"

#include <cstring>

#include "decode/jpeg_level.h"

namespace {

constexpr int kFraction = 13, kBetween = 2;  // bits of the constants, and of the values between the passes

constexpr int32_t fixed(double x) { return (int32_t)(x * (1 << kFraction) + (x < 0 ? -0.5 : 0.5)); }

// 16-bit sums wrap; values stored in 16 bits saturate.
inline int32_t wrap(int32_t x) { return (int16_t)(uint32_t)x; }
inline int32_t saturated(int32_t x) { return x < -32768 ? -32768 : x > 32767 ? 32767 : x; }
inline int32_t rounded_shift(int32_t x, int n) { return (int32_t)((uint32_t)x + (1u << (n - 1))) >> n; }
// Products and sums of damaged data may overflow 32 bits.
inline int32_t add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
inline int32_t sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
inline int32_t mul(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }

// Transforms eight 16-bit values in[0], in[step], ...; results are scaled by 2^kFraction.
inline void idct8(const int16_t *in, int step, int32_t out[8]) {
  const int32_t x0 = in[0], x1 = in[step], x2 = in[2 * step], x3 = in[3 * step], x4 = in[4 * step], x5 = in[5 * step],
                x6 = in[6 * step], x7 = in[7 * step];
  // Even part: a rotation by 3 pi / 8.
  const int32_t r = mul(x2 + x6, fixed(0.541196100));
  const int32_t e2 = sub(r, mul(x6, fixed(1.847759065))), e3 = add(r, mul(x2, fixed(0.765366865)));
  const int32_t e0 = (int32_t)((uint32_t)wrap(x0 + x4) << kFraction),
                e1 = (int32_t)((uint32_t)wrap(x0 - x4) << kFraction);
  const int32_t even[4] = {add(e0, e3), add(e1, e2), sub(e1, e2), sub(e0, e3)};
  // Odd part.
  const int32_t s37 = wrap(x3 + x7), s15 = wrap(x1 + x5), s = mul(s37 + s15, fixed(1.175875602));
  const int32_t a = sub(s, mul(s37, fixed(1.961570560))), b = sub(s, mul(s15, fixed(0.390180644)));
  const int32_t s17 = mul(x1 + x7, fixed(0.899976223)), s35 = mul(x3 + x5, fixed(2.562915447));
  const int32_t odd[4] = {add(sub(mul(x1, fixed(1.501321110)), s17), b), add(sub(mul(x3, fixed(3.072711026)), s35), a),
                          add(sub(mul(x5, fixed(2.053119869)), s35), b), add(sub(mul(x7, fixed(0.298631336)), s17), a)};
  for (int i = 0; i < 4; i++) out[i] = add(even[i], odd[i]), out[7 - i] = sub(even[i], odd[i]);
}

// Half as many results: each the mean of two neighbours of the eight. in[4] does not contribute.
inline void idct4(const int16_t *in, int step, int32_t out[4]) {
  const int32_t x0 = in[0], x1 = in[step], x2 = in[2 * step], x3 = in[3 * step], x5 = in[5 * step], x6 = in[6 * step],
                x7 = in[7 * step];
  const int32_t first = (int32_t)((uint32_t)x0 << (kFraction + 1));
  const int32_t e = sub(mul(x2, fixed(1.847759065)), mul(x6, fixed(0.765366865)));
  const int32_t inner = add(add(mul(x7, -fixed(0.211164243)), mul(x5, fixed(1.451774981))),
                            add(mul(x3, -fixed(2.172734803)), mul(x1, fixed(1.061594337))));
  const int32_t outer = add(add(mul(x7, -fixed(0.509795579)), mul(x5, -fixed(0.601344887))),
                            add(mul(x3, fixed(0.899976223)), mul(x1, fixed(2.562915447))));
  out[0] = add(add(first, e), outer);
  out[1] = add(sub(first, e), inner);
  out[2] = sub(sub(first, e), inner);
  out[3] = sub(add(first, e), outer);
}

// A quarter: each the mean of four of the eight. Only the first and the odd ones contribute. The first has 32 bits, as
// between the passes.
inline void idct2(int32_t x0, const int16_t *in, int step, int32_t out[2]) {
  const int32_t first = (int32_t)((uint32_t)x0 << (kFraction + 2));
  const int32_t odd = add(add(mul(in[7 * step], -fixed(0.720959822)), mul(in[5 * step], fixed(0.850430095))),
                          add(mul(in[3 * step], -fixed(1.272758580)), mul(in[step], fixed(3.624509785))));
  out[0] = add(first, odd);
  out[1] = sub(first, odd);
}

template <int kSize>
inline void idct(int32_t first, const int16_t *in, int step, int32_t *out) {
  if constexpr (kSize == 8) idct8(in, step, out);
  if constexpr (kSize == 4) idct4(in, step, out);
  if constexpr (kSize == 2) idct2(first, in, step, out);
}

template <int kSize>
void inverse(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  // Fewer results are means of more, with one more bit for each halving.
  constexpr int more = kSize == 8 ? 0 : kSize == 4 ? 1 : 2;
  int16_t values[64], between[8 * kSize];
  int rest = 0;
  for (int i = 0; i < 64; i++) {
    values[i] = (int16_t)(uint16_t)((uint32_t)(uint16_t)block[i] * quantisers[i]);
    if (i >= 8 && !(kSize == 4 && i / 8 == 4)) rest |= block[i];
  }
  memset(block, 0, 64 * sizeof *block);
  const bool one_row = rest == 0 && kSize != 2;  // libjpeg's short cut, which wraps
  int32_t first[kSize];
  for (int x = 0; x < 8; x++) {
    int32_t column[kSize];
    idct<kSize>(values[x], values + x, 8, column);
    for (int y = 0; y < kSize; y++) {
      const int32_t value = rounded_shift(column[y], kFraction - kBetween + more);
      between[8 * y + x] = (int16_t)(one_row ? wrap(values[x] * (1 << kBetween)) : saturated(value));
      if (x == 0) first[y] = value;
    }
  }
  for (int y = 0; y < kSize; y++) {
    int32_t row[kSize];
    idct<kSize>(first[y], between + 8 * y, 1, row);
    for (int x = 0; x < kSize; x++) {
      int sample = rounded_shift(row[x], kFraction + kBetween + 3 + more) + 128;
      out[y * stride + x] = (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
    }
  }
}

// One sample: the mean. libjpeg's range limit repeats after 10 bits.
void mean(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t) {
  int sample = rounded_shift(block[0] * quantisers[0], 3);
  sample = (int)((uint32_t)sample << 22) >> 22;
  out[0] = (uint8_t)(sample < -128 ? 0 : sample > 127 ? 255 : sample + 128);
  memset(block, 0, 64 * sizeof *block);
}

}  // namespace

InverseDct inverse_dct(int size) {
#if defined(__x86_64__)
  if (jpeg_level() == VECTOR_LOOPS && size > 1)
    return size == 8 ? inverse_dct_8x8_avx2 : size == 4 ? inverse_dct_4x4_avx2 : inverse_dct_2x2_avx2;
#elif defined(__aarch64__)
  if (jpeg_level() == VECTOR_LOOPS && size > 1)
    return size == 8 ? inverse_dct_8x8_neon : size == 4 ? inverse_dct_4x4_neon : inverse_dct_2x2_neon;
#endif
  return size == 8 ? inverse<8> : size == 4 ? inverse<4> : size == 2 ? inverse<2> : mean;
}
