// SPDX-License-Identifier: Apache-2.0
// The fixed-point loops for AVX-512 (BW, VL). Rows are resampled by permuting registers: the input of a group of 16 /
// channels output pixels is within 64 adjacent elements, so that one permutation moves the pair of taps (2 p, 2 p + 1)
// of every output element next to each other for multiply-add.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "resample/fixed_point.h"

// GCC 12 warns about its own headers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define AVX512_INLINE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"), always_inline)) inline

namespace {

constexpr int kLanes = 16;

// Interleave even and odd words: words 0..31 and 32..63 of the result.
alignas(64) const int16_t kInterleave[2][32] = {{0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
                                                {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};

AVX512_INLINE __mmask64 first_bytes(int n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

struct Rows {
  static constexpr int kLeast = 1;

  AVX512 static void copy_row(int16_t *out, const uint8_t *row, int n) {
    const __m512i start = _mm512_set1_epi16((int16_t)0x8000);
    for (int i = 0; i < n; i += 32) {
      const __mmask32 mask = (__mmask32)first_bytes(std::min(n - i, 32));
      const __m512i x = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, row + i));
      _mm512_storeu_si512(out + i, _mm512_add_epi16(_mm512_slli_epi16(x, 8), start));
    }
  }

  // Elements i to i + 64 * kVectors, of which those before n exist. More than one vector: all do.
  template <int kVectors>
  AVX512_INLINE static void block(int16_t *out, const uint8_t *const *rows, const int32_t *pair, int count, int i,
                                  int n) {
    const __m512i start = _mm512_set1_epi16((int16_t)(0x8000 + count / 2)), high = _mm512_set1_epi16((int16_t)0xff00);
    const __m512i order0 = _mm512_load_si512(kInterleave[0]), order1 = _mm512_load_si512(kInterleave[1]);
    const __mmask64 mask = kVectors > 1 ? ~0ull : first_bytes(n - i);
    __m512i even[kVectors], odd[kVectors];
    for (int v = 0; v < kVectors; v++) even[v] = odd[v] = start;
    for (int t = 0; t < count; t++) {
      const __m512i w = _mm512_set1_epi32(pair[t]);
      const uint8_t *row = rows[t] + i;
      for (int v = 0; v < kVectors; v++) {
        const __m512i x = _mm512_maskz_loadu_epi8(mask, row + 64 * v);
        even[v] = _mm512_add_epi16(even[v], _mm512_mulhi_epu16(_mm512_slli_epi16(x, 8), w));
        odd[v] = _mm512_add_epi16(odd[v], _mm512_mulhi_epu16(_mm512_and_si512(x, high), w));
      }
    }
    for (int v = 0; v < kVectors; v++) {
      int16_t *to = out + i + 64 * v;
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(even[v], order0, odd[v]));
      if (kVectors > 1 || n - i > 32) _mm512_storeu_si512(to + 32, _mm512_permutex2var_epi16(even[v], order1, odd[v]));
    }
  }

  // kTaps: 0 if not known at compile time.
  template <int kTaps>
  AVX512 static void combine(int16_t *out, const uint8_t *const *rows, const uint16_t *weights, int taps, int n) {
    constexpr int kVectors = 3;  // share the weights
    const int count = kTaps ? kTaps : taps;
    int32_t pair[kMostFixedTaps];
    for (int t = 0; t < count; t++) pair[t] = (int32_t)(weights[t] * 0x10001u);
    int i = 0;
    for (; i + 64 * kVectors <= n; i += 64 * kVectors) block<kVectors>(out, rows, pair, count, i, n);
    for (; i < n; i += 64) block<1>(out, rows, pair, count, i, n);
  }
};

AVX512 void vertical_signed(int16_t *out, const uint8_t *const *rows, const int16_t *weights, int taps, int n,
                            int shift) {
  const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi32(1 << (shift - 1));
  const __m128i count = _mm_cvtsi32_si128(shift);
  const __m512i order0 = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                order1 = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int i = 0; i < n; i += 64) {
    const __mmask64 mask = first_bytes(n - i);
    __m512i sum[4] = {half, half, half, half};
    for (int t = 0; t < taps; t += 2) {
      const bool two = t + 1 < taps;
      const __m512i a = _mm512_maskz_loadu_epi8(mask, rows[t] + i);
      const __m512i b = two ? _mm512_maskz_loadu_epi8(mask, rows[t + 1] + i) : zero;
      const __m512i w = _mm512_set1_epi32((uint16_t)weights[t] | (two ? (uint32_t)(uint16_t)weights[t + 1] << 16 : 0));
      const __m512i lo = _mm512_unpacklo_epi8(a, b), hi = _mm512_unpackhi_epi8(a, b);
      sum[0] = _mm512_add_epi32(sum[0], _mm512_madd_epi16(_mm512_unpacklo_epi8(lo, zero), w));
      sum[1] = _mm512_add_epi32(sum[1], _mm512_madd_epi16(_mm512_unpackhi_epi8(lo, zero), w));
      sum[2] = _mm512_add_epi32(sum[2], _mm512_madd_epi16(_mm512_unpacklo_epi8(hi, zero), w));
      sum[3] = _mm512_add_epi32(sum[3], _mm512_madd_epi16(_mm512_unpackhi_epi8(hi, zero), w));
    }
    for (__m512i &s : sum) s = _mm512_sra_epi32(s, count);
    const __m512i low = _mm512_packs_epi32(sum[0], sum[1]), high = _mm512_packs_epi32(sum[2], sum[3]);
    _mm512_storeu_si512(out + i, _mm512_permutex2var_epi64(low, order0, high));
    if (n - i > 32) _mm512_storeu_si512(out + i + 32, _mm512_permutex2var_epi64(low, order1, high));
  }
}

// Whether the inputs of each group of `group` output pixels are within `span` elements.
bool fits(const Taps &t, int group, int channels, int span) {
  for (int j = 0; j < t.n; j += group) {
    const int last = std::min(j + group, t.n) - 1;
    if ((std::abs(t.first[last] - t.first[j]) + t.k) * channels > span) return false;
  }
  return true;
}

void prepare(Taps &t, int channels) {
  make_fixed(t);
  if ((t.prepared_for == 1 || t.prepared_for == 2) && t.group_channels == channels) return;
  t.group = kLanes / channels;
  while (t.group > 0 && !fits(t, t.group, channels, 64)) t.group--;
  // AVX2's loops keep their lanes full where the inputs of a few pixels fill the registers.
  const bool has_lanes = channels == 1 || channels == 3 || channels == 4;
  if (t.group == 0 || (has_lanes && t.group * channels < kLanes / 2)) return kFixedAvx2.prepare(t, channels);
  t.prepared_for = 2;
  t.group_channels = channels;
  t.two = !fits(t, t.group, channels, 32);
  const int groups = (t.n + t.group - 1) / t.group, pairs = t.stride / 2;
  t.permutation.assign((size_t)groups * 2 * kLanes, 0);
  t.group_weights.assign((size_t)groups * pairs * 2 * kLanes, 0);
  t.group_base.resize(groups);
  for (int g = 0; g < groups; g++) {
    const int begin = g * t.group, end = std::min(begin + t.group, t.n);
    const int base = std::min(t.first[begin], t.first[end - 1]);
    t.group_base[g] = (base - t.lo) * channels;
    int16_t *where = t.permutation.data() + (size_t)g * 2 * kLanes;
    int32_t *weights = (int32_t *)t.group_weights.data() + (size_t)g * pairs * kLanes;
    for (int j = begin; j < end; j++) {
      const int32_t *pair = (const int32_t *)(t.fixed.data() + (size_t)j * t.stride);
      for (int c = 0; c < channels; c++) {
        const int lane = (j - begin) * channels + c, offset = (t.first[j] - base) * channels + c;
        where[2 * lane] = (int16_t)offset;
        where[2 * lane + 1] = (int16_t)(offset + channels);
        for (int p = 0; p < pairs; p++) weights[p * kLanes + lane] = pair[p];
      }
    }
  }
}

// kPairs: 0 if not known at compile time. kTwo: the input of a group spans two registers.
template <int kPairs, bool kTwo>
AVX512 void groups(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  const int pairs = kPairs ? kPairs : t.stride / 2, bytes = t.group * t.group_channels, total = t.n * t.group_channels;
  const __m512i bias = _mm512_set1_epi32(row_bias(format)), zero = _mm512_setzero_si512();
  const __m512i step = _mm512_set1_epi16((int16_t)(2 * t.group_channels));
  const __m128i shift = _mm_cvtsi32_si128(row_shift(format));
  const int16_t *w = t.group_weights.data(), *where = t.permutation.data();
  const int32_t *base = t.group_base.data();
  for (int i = 0; i < total; i += bytes, where += 32, base++) {
    const int16_t *p = row + *base;
    const __m512i a = _mm512_loadu_si512(p), b = kTwo ? _mm512_loadu_si512(p + 32) : zero;
    __m512i index = _mm512_loadu_si512(where), sum = bias;
    for (int k = 0; k < pairs; k++, w += 32) {
      const __m512i x = kTwo ? _mm512_permutex2var_epi16(a, index, b) : _mm512_permutexvar_epi16(index, a);
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(x, _mm512_loadu_si512(w)));
      index = _mm512_add_epi16(index, step);
    }
    const __m128i result = _mm512_cvtusepi32_epi8(_mm512_max_epi32(_mm512_sra_epi32(sum, shift), zero));
    if (i + 16 <= total)
      _mm_storeu_si128((__m128i *)(out + i), result);  // excess bytes are overwritten by the next group
    else
      _mm_mask_storeu_epi8(out + i, (__mmask16)((1u << (total - i)) - 1), result);
  }
}

template <bool kTwo>
void any_pairs(uint8_t *out, const int16_t *row, const Taps &t, RowFormat format) {
  switch (t.stride / 2) {
    case 1:
      return groups<1, kTwo>(out, row, t, format);
    case 2:
      return groups<2, kTwo>(out, row, t, format);
    case 3:
      return groups<3, kTwo>(out, row, t, format);
    default:
      return groups<0, kTwo>(out, row, t, format);
  }
}

void horizontal(uint8_t *out, const int16_t *row, const Taps &t, int channels, RowFormat format) {
  if (t.prepared_for == 1) return kFixedAvx2.horizontal(out, row, t, channels, format);
  t.two ? any_pairs<true>(out, row, t, format) : any_pairs<false>(out, row, t, format);
}

}  // namespace

const FixedPoint kFixedAvx512 = {vertical_by<Rows>, vertical_signed, horizontal,
                                 prepare,           exact_rows_avx2, exact_pixels_avx2};
#endif
