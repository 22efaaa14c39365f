// SPDX-License-Identifier: Apache-2.0
// The fixed-point loops for AVX2. Each 128-bit lane makes a pixel of 3 or 4 channels: eight adjacent int16 of the row
// are shuffled so that the two taps of a pair are adjacent for multiply-add. With one channel, a lane holds eight taps
// of a pixel, and the sums of its pairs are added up at the end.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "resample/fixed_point.h"

#define AVX2 __attribute__((target("avx2")))

namespace {

constexpr int kLanes = 8, kBlock = 32;

// Stores 16-bit values, undoing the lane order of unpack and pack instructions.
AVX2 inline __attribute__((always_inline)) void store_lanes(int16_t *out, __m256i lo, __m256i hi) {
  _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(lo, hi, 0x20));
  _mm256_storeu_si256((__m256i *)(out + 16), _mm256_permute2x128_si256(lo, hi, 0x31));
}

struct Rows {
  static constexpr int kLeast = kBlock;

  AVX2 static void copy_row(int16_t *out, const uint8_t *row, int n) {
    const __m256i start = _mm256_set1_epi16((int16_t)0x8000);
    for (int i = 0;; i = std::min(i + 16, n - 16)) {
      const __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(row + i)));
      _mm256_storeu_si256((__m256i *)(out + i), _mm256_add_epi16(_mm256_slli_epi16(x, 8), start));
      if (i == n - 16) return;
    }
  }

  // Combines rows in blocks of kVectors vectors, which share the weights; the last block overlaps the one before.
  // kTaps: 0 if not known at compile time.
  template <int kTaps, int kVectors>
  AVX2 static void combine(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
    constexpr int kStep = kBlock * kVectors;
    const int count = kTaps ? kTaps : taps;
    const __m256i start = _mm256_set1_epi16((int16_t)(0x8000 + count / 2)), high = _mm256_set1_epi16((int16_t)0xff00);
    int32_t pair[kMostFixedTaps];
    for (int t = 0; t < count; t++) pair[t] = (int32_t)(weights[t] * 0x10001u);
    for (int i = 0;; i = std::min(i + kStep, n - kStep)) {
      __m256i even[kVectors], odd[kVectors];
      for (int v = 0; v < kVectors; v++) even[v] = odd[v] = start;
      for (int t = 0; t < count; t++) {
        const __m256i w = _mm256_set1_epi32(pair[t]);
        const uint8_t *row = rows[t] + i;
        for (int v = 0; v < kVectors; v++) {
          const __m256i x = _mm256_loadu_si256((const __m256i *)(row + kBlock * v));
          even[v] = _mm256_add_epi16(even[v], _mm256_mulhi_epu16(_mm256_slli_epi16(x, 8), w));
          odd[v] = _mm256_add_epi16(odd[v], _mm256_mulhi_epu16(_mm256_and_si256(x, high), w));
        }
      }
      for (int v = 0; v < kVectors; v++)
        store_lanes(out + i + kBlock * v, _mm256_unpacklo_epi16(even[v], odd[v]),
                    _mm256_unpackhi_epi16(even[v], odd[v]));
      if (i == n - kStep) return;
    }
  }

  template <int kTaps>
  AVX2 static void combine(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
    (n < 3 * kBlock ? combine<kTaps, 1> : combine<kTaps, 3>)(out, rows, weights, taps, n);
  }
};

AVX2 void combine_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n, int shift) {
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (shift - 1));
  const __m128i count = _mm_cvtsi32_si128(shift);
  for (int i = 0;; i = std::min(i + kBlock, n - kBlock)) {
    __m256i sum[4] = {half, half, half, half};
    for (int t = 0; t < taps; t += 2) {
      const bool two = t + 1 < taps;
      const __m256i a = _mm256_loadu_si256((const __m256i *)(rows[t] + i));
      const __m256i b = two ? _mm256_loadu_si256((const __m256i *)(rows[t + 1] + i)) : zero;
      const __m256i w = _mm256_set1_epi32((uint16_t)weights[t] | (two ? (uint32_t)(uint16_t)weights[t + 1] << 16 : 0));
      const __m256i lo = _mm256_unpacklo_epi8(a, b), hi = _mm256_unpackhi_epi8(a, b);
      sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(lo, zero), w));
      sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(lo, zero), w));
      sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(hi, zero), w));
      sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(hi, zero), w));
    }
    for (__m256i &s : sum) s = _mm256_sra_epi32(s, count);
    store_lanes(out + i, _mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
    if (i == n - kBlock) return;
  }
}

void vertical_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n, int shift) {
  (n < kBlock ? kFixedPlain.vertical_signed : combine_signed)(out, rows, weights, taps, n, shift);
}

// In group_base: begin of each pixel's input. In group_weights: pairs of weights, repeated for the pixel's lanes; with
// one channel, eight weights for each of two pixels that are four apart, and again for their next taps.
void prepare(Taps &t, int channels) {
  make_fixed(t);
  if (t.prepared_for == 1 && t.group_channels == channels) return;
  t.prepared_for = 1;
  t.group_channels = channels;
  t.group = channels == 1 || channels == 3 || channels == 4 ? 2 : -1;
  if (t.group < 0) return;
  const int padded = (t.n + kLanes - 1) / kLanes * kLanes, pairs = t.stride / 2, eights = (t.k + 7) / 8;
  t.group_base.resize(padded);
  t.group_weights.assign((size_t)padded * (channels == 1 ? eights * 8 : pairs * 8), 0);
  for (int j = 0; j < padded; j++) {
    const int from = std::min(j, t.n - 1);
    const int16_t *fixed = t.fixed.data() + (size_t)from * t.stride;
    t.group_base[j] = (t.first[from] - t.lo) * channels;
    if (channels == 1) {
      int16_t *w = t.group_weights.data() + ((size_t)(j / 8 * 4 + j % 4) * eights * 2 + j % 8 / 4) * 8;
      for (int k = 0; k < t.k; k++) w[k / 8 * 16 + k % 8] = fixed[k];
    } else {
      int32_t *w = (int32_t *)t.group_weights.data() + (size_t)(j / 2) * pairs * kLanes + j % 2 * 4;
      for (int p = 0; p < pairs; p++)
        for (int lane = 0; lane < 4; lane++) w[p * kLanes + lane] = ((const int32_t *)fixed)[p];
    }
  }
}

AVX2 inline __attribute__((always_inline)) __m256i load_two(const int16_t *a, const int16_t *b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
                                 _mm_loadu_si128((const __m128i *)b), 1);
}

// Makes eight pixels of one channel at a time. kEights: eights of taps, 0 if not known at compile time.
template <int kEights>
AVX2 void gray_pixels(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  const int eights = kEights ? kEights : (t.k + 7) / 8;
  const __m256i bias = _mm256_set1_epi32(row_bias(format));
  const __m128i shift = _mm_cvtsi32_si128(row_shift(format));
  const int16_t *w = t.group_weights.data();
  const int32_t *base = t.group_base.data();
  for (int j = 0; j < t.n; j += 8, base += 8) {
    __m256i sum[4];
    for (int i = 0; i < 4; i++) {
      const int16_t *a = row + base[i], *b = row + base[i + 4];
      sum[i] = _mm256_madd_epi16(load_two(a, b), _mm256_loadu_si256((const __m256i *)w));
      w += 16;
      for (int e = 1; e < eights; e++, w += 16)
        sum[i] = _mm256_add_epi32(
            sum[i], _mm256_madd_epi16(load_two(a + 8 * e, b + 8 * e), _mm256_loadu_si256((const __m256i *)w)));
    }
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
    const __m256i x = _mm256_sra_epi32(_mm256_add_epi32(all, bias), shift);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
    memcpy(out + j, &bytes, (size_t)std::min(t.n - j, 8));
  }
}

// The sums of two pixels of C channels.
template <int C, int kPairs>
AVX2 inline __attribute__((always_inline)) __m256i sums(const int16_t *row, const int32_t *base, const int16_t *w,
                                                        int pairs, __m256i sum) {
  const __m256i order = C == 3 ? _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1, 0, 1, 6, 7, 2,
                                                  3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1)
                               : _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1, 8, 9, 2,
                                                  3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  const int n = kPairs ? kPairs : pairs;
  const int16_t *a = row + base[0], *b = row + base[1];
  for (int p = 0; p < n; p++, w += 2 * kLanes, a += 2 * C, b += 2 * C) {
    const __m256i y = _mm256_shuffle_epi8(load_two(a, b), order);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(y, _mm256_loadu_si256((const __m256i *)w)));
  }
  return sum;
}

// Makes four pixels of C bytes at a time.
template <int C, int kPairs>
AVX2 void pixels(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  constexpr int kBytes = 4 * C;
  const int pairs = kPairs ? kPairs : t.stride / 2, total = t.n * C;
  const __m256i bias = _mm256_set1_epi32(row_bias(format));
  const __m128i shift = _mm_cvtsi32_si128(row_shift(format));
  const __m128i squeeze = C == 3 ? _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1)
                                 : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const int16_t *w = t.group_weights.data();
  const int32_t *base = t.group_base.data();
  for (int i = 0; i < total; i += kBytes, base += 4) {
    const __m256i a = _mm256_sra_epi32(sums<C, kPairs>(row, base, w, pairs, bias), shift);
    w += pairs * 2 * kLanes;
    const __m256i b = _mm256_sra_epi32(sums<C, kPairs>(row, base + 2, w, pairs, bias), shift);
    w += pairs * 2 * kLanes;
    // Lanes hold the pixels 0 2 | 1 3 after packing.
    const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_setzero_si256());
    const __m128i low = _mm256_castsi256_si128(packed), high = _mm256_extracti128_si256(packed, 1);
    const __m128i bytes = _mm_shuffle_epi8(_mm_unpacklo_epi32(low, high), squeeze);
    if (i + 16 <= total)
      _mm_storeu_si128((__m128i *)(out + i), bytes);  // excess bytes are overwritten by the next step
    else {
      uint8_t last[16];
      _mm_storeu_si128((__m128i *)last, bytes);
      memcpy(out + i, last, std::min(total - i, kBytes));
    }
  }
}

template <int C>
void any_pairs(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  switch (t.stride / 2) {
    case 1:
      return pixels<C, 1>(out, row, t, format);
    case 2:
      return pixels<C, 2>(out, row, t, format);
    case 3:
      return pixels<C, 3>(out, row, t, format);
    default:
      return pixels<C, 0>(out, row, t, format);
  }
}

void any_eights(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  switch ((t.k + 7) / 8) {
    case 1:
      return gray_pixels<1>(out, row, t, format);
    case 2:
      return gray_pixels<2>(out, row, t, format);
    case 3:
      return gray_pixels<3>(out, row, t, format);
    default:
      return gray_pixels<0>(out, row, t, format);
  }
}

void horizontal(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  switch (channels) {
    case 1:
      return any_eights(out, row, t, format);
    case 3:
      return any_pairs<3>(out, row, t, format);
    case 4:
      return any_pairs<4>(out, row, t, format);
    default:
      return kFixedPlain.horizontal(out, row, t, channels, format);
  }
}

}  // namespace

const FixedPoint kFixedAvx2 = {vertical_by<Rows>, vertical_signed, horizontal,
                               prepare,           exact_rows_avx2, exact_pixels_avx2};
#endif
