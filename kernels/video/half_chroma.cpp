// SPDX-License-Identifier: Apache-2.0
#include "video/half_chroma.h"

#include <algorithm>

#include "color/interleave.h"
#include "core/kernel.h"

#if defined(__x86_64__)

namespace {

constexpr int64_t kStep = kLeastHalfChroma, kSamples = kStep / 2;

#define AVX2 __attribute__((target("avx2"), always_inline)) inline

struct Pixels {
  __m256i low, high;  // 16 bits: pixels 0 to 7 and 16 to 23, 8 to 15 and 24 to 31, as unpacking bytes orders them
};

// 16 samples between two rows: 4 times their value, minus the middle. Multiplying by shifts leaves the units that
// multiply to the matrix.
template <int kFar>
AVX2 __m256i between_rows(const uint8_t *near, const uint8_t *far) {
  const __m256i middle = _mm256_set1_epi16(4 * 128), a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)near));
  if (kFar == 0) return _mm256_sub_epi16(_mm256_slli_epi16(a, 2), middle);
  const __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)far)), sum = _mm256_add_epi16(a, b);
  const __m256i twice = _mm256_slli_epi16(kFar == 2 ? sum : a, 1);
  return _mm256_add_epi16(twice, _mm256_sub_epi16(kFar == 2 ? _mm256_setzero_si256() : sum, middle));
}

// 32 pixels of 15 bits: a sample for each even one, the mean of two for each odd one.
template <int kFar>
AVX2 Pixels spread(const ChromaRows &rows, int64_t at) {
  const __m256i here = between_rows<kFar>(rows.near + at, rows.far + at);
  const __m256i next = between_rows<kFar>(rows.near + at + 1, rows.far + at + 1);
  const __m256i even = _mm256_slli_epi16(here, 5), odd = _mm256_slli_epi16(_mm256_add_epi16(here, next), 4);
  return {_mm256_unpacklo_epi16(even, odd), _mm256_unpackhi_epi16(even, odd)};
}

struct Factors {
  __m256i y, rv, gu, gv, bu, black;
};

AVX2 __m256i times(__m256i x, __m256i factor) { return _mm256_mulhrs_epi16(x, factor); }

AVX2 __m256i bytes(__m256i low, __m256i high) {
  return _mm256_packus_epi16(_mm256_srai_epi16(low, 5), _mm256_srai_epi16(high, 5));
}

template <int kFar>
AVX2 void convert(const uint8_t *luma, const ChromaRows &u_rows, const ChromaRows &v_rows, int64_t at, const Factors &k,
                  uint8_t *out) {
  const Pixels u = spread<kFar>(u_rows, at), v = spread<kFar>(v_rows, at);
  const __m256i l = _mm256_loadu_si256((const __m256i *)luma), zero = _mm256_setzero_si256();
  const __m256i half = _mm256_set1_epi16(16);
  const auto brightness = [&](__m256i x) __attribute__((target("avx2"), always_inline)) {
    return _mm256_add_epi16(times(_mm256_slli_epi16(_mm256_sub_epi16(x, k.black), 7), k.y), half);
  };
  const __m256i low = brightness(_mm256_unpacklo_epi8(l, zero)), high = brightness(_mm256_unpackhi_epi8(l, zero));
  const __m256i r = bytes(_mm256_add_epi16(low, times(v.low, k.rv)), _mm256_add_epi16(high, times(v.high, k.rv)));
  const __m256i b = bytes(_mm256_add_epi16(low, times(u.low, k.bu)), _mm256_add_epi16(high, times(u.high, k.bu)));
  const __m256i g_low = _mm256_add_epi16(_mm256_add_epi16(low, times(u.low, k.gu)), times(v.low, k.gv));
  const __m256i g_high = _mm256_add_epi16(_mm256_add_epi16(high, times(u.high, k.gu)), times(v.high, k.gv));
  store_interleaved<1>(r, bytes(g_low, g_high), b, out);
}

// The last step overlaps the one before. By value, as what is written to `out` might be the arguments otherwise.
template <int kFar>
__attribute__((target("avx2"))) void avx2(const HalfChromaRow row, const ycbcr::Coefficients &c, uint8_t *out) {
  const Factors k = {_mm256_set1_epi16(c.y),  _mm256_set1_epi16(c.rv), _mm256_set1_epi16(c.gu),
                     _mm256_set1_epi16(c.gv), _mm256_set1_epi16(c.bu), _mm256_set1_epi16(c.black)};
  int64_t i = 0;
  for (; i + kStep < row.n; i += kStep) convert<kFar>(row.luma + i, row.u, row.v, i / 2, k, out + 3 * i);
  i = row.n - kStep;
  if (i / 2 + kSamples < row.n_chroma) return convert<kFar>(row.luma + i, row.u, row.v, i / 2, k, out + 3 * i);
  // At the picture's edge the last sample counts twice.
  uint8_t ends[4][kSamples + 1];
  const uint8_t *const rows[4] = {row.u.near, row.u.far, row.v.near, row.v.far};
  for (int r = 0; r < 4; r++) {
    std::copy_n(rows[r] + i / 2, kSamples, ends[r]);
    ends[r][kSamples] = ends[r][kSamples - 1];
  }
  convert<kFar>(row.luma + i, {ends[0], ends[1]}, {ends[2], ends[3]}, 0, k, out + 3 * i);
}

}  // namespace

bool has_half_chroma_loop() {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2;
}
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out) {
  (row.far_weight == 0 ? avx2<0> : row.far_weight == 1 ? avx2<1> : avx2<2>)(row, k, out);
}

#else

bool has_half_chroma_loop() { return false; }
void half_chroma_to_rgb(const HalfChromaRow &, const ycbcr::Coefficients &, uint8_t *) {
  fail("[internal error] no such loop");
}

#endif
