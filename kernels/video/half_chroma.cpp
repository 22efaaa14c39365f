// SPDX-License-Identifier: Apache-2.0
#include "video/half_chroma.h"

#include <algorithm>

#include "color/interleave.h"
#include "core/kernel.h"

#if defined(__x86_64__)

namespace {

constexpr int64_t kStep = kLeastHalfChroma, kSamples = kStep / 2;
constexpr int64_t kBlock = 1024;  // pixels whose chroma stays in the first-level cache

#define AVX2 __attribute__((target("avx2"), always_inline)) inline

AVX2 __m256i load_samples(const uint8_t *p) {  // eight to the lower half of each lane
  return _mm256_permute4x64_epi64(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)), 0x10);
}

// Interpolates n samples between two rows: half of their 15 bits. The last step overlaps the one before.
AVX2 void between_rows(const ChromaRows &rows, int64_t n, int far_weight, int16_t *out) {
  const int near = (4 - far_weight) * 16, far = far_weight * 16;
  const __m256i weights = _mm256_set1_epi16((int16_t)(near | far << 8)), middle = _mm256_set1_epi8((char)128);
  const auto step = [&](int64_t i) __attribute__((target("avx2"), always_inline)) {
    const __m256i both = _mm256_unpacklo_epi8(load_samples(rows.near + i), load_samples(rows.far + i));
    _mm256_storeu_si256((__m256i *)(out + i), _mm256_maddubs_epi16(weights, _mm256_xor_si256(both, middle)));
  };
  for (int64_t i = 0; i + kSamples < n; i += kSamples) step(i);
  step(n - kSamples);
}

// Of 32 pixels in 16 bits. Apart, they need not be put in order before they are bytes.
struct Pixels {
  __m256i even, odd;
};

AVX2 __m256i times(__m256i x, __m256i factor) { return _mm256_mulhrs_epi16(x, factor); }
AVX2 Pixels times(const Pixels &x, __m256i factor) { return {times(x.even, factor), times(x.odd, factor)}; }
AVX2 Pixels sum(const Pixels &x, const Pixels &y) {
  return {_mm256_add_epi16(x.even, y.even), _mm256_add_epi16(x.odd, y.odd)};
}

// A sample for each even pixel, the mean of two for each odd one.
AVX2 Pixels spread(const int16_t *p) {
  const __m256i here = _mm256_loadu_si256((const __m256i *)p), next = _mm256_loadu_si256((const __m256i *)(p + 1));
  return {_mm256_add_epi16(here, here), _mm256_add_epi16(here, next)};
}

// A product with 2^10 rounds five fraction bits off.
AVX2 __m256i bytes(const Pixels &x) {
  const __m256i unit = _mm256_set1_epi16(1 << 10);
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  return _mm256_shuffle_epi8(_mm256_packus_epi16(times(x.even, unit), times(x.odd, unit)), order);
}

// Luma is negative, as bytes can be multiplied by -2^7 but not by 2^7, and so is its factor.
struct Factors {
  __m256i y, rv, gu, gv, bu, black;
};

struct Interleaved {
  uint8_t *out;
  AVX2 void put(int64_t i, __m256i r, __m256i g, __m256i b) const { store_interleaved<1>(r, g, b, out + 3 * i); }
};
struct InPlanes {
  const Planes out;
  AVX2 void put(int64_t i, __m256i r, __m256i g, __m256i b) const {
    _mm256_storeu_si256((__m256i *)(out.r + i), r);
    _mm256_storeu_si256((__m256i *)(out.g + i), g);
    _mm256_storeu_si256((__m256i *)(out.b + i), b);
  }
};

template <class Out>
AVX2 void convert(const uint8_t *luma, const int16_t *u_row, const int16_t *v_row, const Factors &k, int64_t at,
                  const Out &out) {
  const Pixels u = spread(u_row), v = spread(v_row);
  const __m256i l = _mm256_loadu_si256((const __m256i *)luma);
  const __m256i even = _mm256_maddubs_epi16(l, _mm256_set1_epi16(0x0080));
  const __m256i odd = _mm256_maddubs_epi16(l, _mm256_set1_epi16((int16_t)0x8000));
  const Pixels y = times(sum({even, odd}, {k.black, k.black}), k.y);
  const __m256i r = bytes(sum(y, times(v, k.rv))), b = bytes(sum(y, times(u, k.bu)));
  out.put(at, r, bytes(sum(sum(y, times(u, k.gu)), times(v, k.gv))), b);
}

// By value, as what is written to `out` might be the arguments otherwise.
template <class Out>
__attribute__((target("avx2"))) void avx2(const HalfChromaRow row, const ycbcr::Coefficients &c, const Out out) {
  const Factors k = {_mm256_set1_epi16((int16_t)-c.y), _mm256_set1_epi16(c.rv), _mm256_set1_epi16(c.gu),
                     _mm256_set1_epi16(c.gv),          _mm256_set1_epi16(c.bu), _mm256_set1_epi16(c.black << 7)};
  int16_t u[kBlock / 2 + 1], v[kBlock / 2 + 1];
  for (int64_t done = 0; done < row.n;) {
    const int64_t first = std::min(done, row.n - kStep), n = std::min(kBlock, row.n - first);
    const int64_t sample = first / 2, samples = std::min(n / 2 + 1, row.n_chroma - sample);
    between_rows({row.u.near + sample, row.u.far + sample}, samples, row.far_weight, u);
    between_rows({row.v.near + sample, row.v.far + sample}, samples, row.far_weight, v);
    if (samples == n / 2) u[n / 2] = u[n / 2 - 1], v[n / 2] = v[n / 2 - 1];  // at the picture's edge
    const auto step = [&](int64_t i) __attribute__((target("avx2"), always_inline)) {
      convert(row.luma + first + i, u + i / 2, v + i / 2, k, first + i, out);
    };
    for (int64_t i = 0; i + kStep < n; i += kStep) step(i);
    step(n - kStep);
    done = first + n;
  }
}

}  // namespace

bool has_half_chroma_loop() {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2;
}
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out) {
  avx2(row, k, Interleaved{out});
}
void half_chroma_to_planes(const HalfChromaRow &row, const ycbcr::Coefficients &k, const Planes &out) {
  avx2(row, k, InPlanes{out});
}

#else

bool has_half_chroma_loop() { return false; }
void half_chroma_to_rgb(const HalfChromaRow &, const ycbcr::Coefficients &, uint8_t *) {
  fail("[internal error] no such loop");
}
void half_chroma_to_planes(const HalfChromaRow &, const ycbcr::Coefficients &, const Planes &) {
  fail("[internal error] no such loop");
}

#endif
