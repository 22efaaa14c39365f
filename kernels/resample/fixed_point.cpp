// SPDX-License-Identifier: Apache-2.0
// The portable loops, for processors without AVX-512, AVX2 or NEON, and the reference for tests of the others.
#include "resample/fixed_point.h"

#include <atomic>

#include "core/kernel.h"

namespace {

// Half a step for each tap, as mulhi rounds down, and the offset for which the sum fits int16.
uint16_t start_value(int taps) { return (uint16_t)(0x8000 + taps / 2); }

CLONES void vertical(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
  const uint8_t *a = rows[0];
  if (taps == 1) {
    for (int i = 0; i < n; i++) out[i] = (int16_t)(uint16_t)((a[i] << 8) + 0x8000);
    return;
  }
  const uint8_t *b = rows[1];
  const uint32_t start = start_value(taps), wa = weights[0], wb = weights[1];
  if (taps == 2) {
    for (int i = 0; i < n; i++) out[i] = (int16_t)(start + ((a[i] * wa) >> 8) + ((b[i] * wb) >> 8));
    return;
  }
  const uint8_t *c = rows[2];
  const uint32_t wc = weights[2];
  for (int i = 0; i < n; i++) out[i] = (int16_t)(start + ((a[i] * wa) >> 8) + ((b[i] * wb) >> 8) + ((c[i] * wc) >> 8));
  for (int t = 3; t < taps; t++) {
    const uint8_t *r = rows[t];
    const uint32_t w = weights[t];
    for (int i = 0; i < n; i++) out[i] = (int16_t)(out[i] + ((r[i] * w) >> 8));
  }
}

CLONES void vertical_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n,
                            int shift) {
  constexpr int kBlock = 256;
  int32_t sum[kBlock];
  for (int begin = 0; begin < n; begin += kBlock) {
    const int m = n - begin < kBlock ? n - begin : kBlock;
    for (int i = 0; i < m; i++) sum[i] = 1 << (shift - 1);
    for (int t = 0; t < taps; t++) {
      const uint8_t *r = rows[t] + begin;
      const int32_t w = weights[t];
      for (int i = 0; i < m; i++) sum[i] += r[i] * w;
    }
    for (int i = 0; i < m; i++) out[begin + i] = (int16_t)(sum[i] >> shift);
  }
}

inline uint8_t finish(int32_t sum, int shift) {
  sum >>= shift;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

inline void gray_pixels(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  for (int j = 0; j < t.n; j++) {
    const int16_t *w = t.fixed.data() + (int64_t)j * t.stride, *p = row + (t.first[j] - t.lo);
    int32_t sum = row_bias(format);
    for (int k = 0; k < t.k; k++) sum += w[k] * p[k];
    out[j] = finish(sum, row_shift(format));
  }
}

typedef int16_t Short4 __attribute__((vector_size(8)));
typedef int32_t Int4 __attribute__((vector_size(16)));

// Two to four channels in a vector; reads beyond the last channel, but does not write there.
template <int C>
inline void pixels(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  const int32_t bias = row_bias(format);
  for (int j = 0; j < t.n; j++) {
    const int16_t *w = t.fixed.data() + (int64_t)j * t.stride, *p = row + (int64_t)(t.first[j] - t.lo) * C;
    Int4 sum = {bias, bias, bias, bias};
    for (int k = 0; k < t.k; k++) {
      Short4 x;
      __builtin_memcpy(&x, p + k * C, sizeof x);
      sum += __builtin_convertvector(x, Int4) * w[k];
    }
    for (int c = 0; c < C; c++) out[(int64_t)j * C + c] = finish(sum[c], row_shift(format));
  }
}

// Pixels with enough channels for loops over them.
inline void long_pixels(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  constexpr int kBlock = 64;
  int32_t sum[kBlock];
  for (int j = 0; j < t.n; j++) {
    const int16_t *w = t.fixed.data() + (int64_t)j * t.stride;
    for (int begin = 0; begin < channels; begin += kBlock) {
      const int m = channels - begin < kBlock ? channels - begin : kBlock;
      const int16_t *p = row + (int64_t)(t.first[j] - t.lo) * channels + begin;
      for (int c = 0; c < m; c++) sum[c] = row_bias(format);
      for (int k = 0; k < t.k; k++)
        for (int c = 0; c < m; c++) sum[c] += w[k] * p[(int64_t)k * channels + c];
      for (int c = 0; c < m; c++) out[(int64_t)j * channels + begin + c] = finish(sum[c], row_shift(format));
    }
  }
}

CLONES void horizontal(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  switch (channels) {
    case 1:
      return gray_pixels(out, row, t, format);
    case 2:
      return pixels<2>(out, row, t, format);
    case 3:
      return pixels<3>(out, row, t, format);
    case 4:
      return pixels<4>(out, row, t, format);
    default:
      return long_pixels(out, row, t, channels, format);
  }
}

void prepare(Taps &t, int) { make_fixed(t); }

// Tests lower it to run the other loops: 0 plain, 1 AVX2 (NEON), 2 AVX-512.
std::atomic<int> highest_level{2};

}  // namespace

const FixedPoint kFixedPlain = {vertical, vertical_signed, horizontal, prepare, nullptr, nullptr};

EXPORT void resample_limit(int level) { highest_level = level; }
EXPORT_SHORT(resample_limit)

const FixedPoint &fixed_point() {
#if defined(__x86_64__)
  static const int level = __builtin_cpu_supports("x86-64-v4") ? 2 : __builtin_cpu_supports("x86-64-v3") ? 1 : 0;
  if (level >= 2 && highest_level >= 2) return kFixedAvx512;
  if (level >= 1 && highest_level >= 1) return kFixedAvx2;
#elif defined(__aarch64__)
  if (highest_level >= 1) return kFixedNeon;
#endif
  return kFixedPlain;
}
