// SPDX-License-Identifier: Apache-2.0
// Rows of an output that look at computed places of an input: what the kernels that warp share.
#pragma once
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/kernel.h"
#include "geometry/sampling.h"

namespace {

// An input and where a row of the output lies in it. Axes are x, y(, z).
template <int kDims, class In>
struct Source {
  const In *data;
  const In *fill;  // one element of all channels, or null to repeat the border
  int64_t extent[kDims], step[kDims];
  int channels;
  const int32_t *index[kDims];
  const float *weight[kDims];
  int border = kBorderReplicate;  // what is repeated where there is no fill

  const In *at(const int64_t *i) const {
    int64_t offset = 0;
    for (int d = 0; d < kDims; d++) {
      int64_t k = i[d];
      if (k < 0 || k >= extent[d]) {
        if (fill) return fill;
        k = border_index((int32_t)k, (int32_t)extent[d], border);
      }
      offset += k * step[d];
    }
    return data + offset;
  }
  // The elements [begin, end) of the row whose indices lie in [lo, extent + hi): they are neighbours as each index only
  // grows or only falls along the row.
  void run_within(int64_t n, int lo, int hi, int64_t *begin, int64_t *end) const {
    auto within = [&](int64_t x) {
      for (int d = 0; d < kDims; d++)
        if (index[d][x] < lo || index[d][x] >= extent[d] + hi) return false;
      return true;
    };
    int64_t b = 0, e = n;
    while (b < n && !within(b)) b++;
    while (e > b && !within(e - 1)) e--;
    *begin = b, *end = e;
  }
};

template <class Out, int kDims, class In>
inline void nearest(Out *out, const Source<kDims, In> &s, int64_t x) {
  int64_t i[kDims];
  for (int d = 0; d < kDims; d++) i[d] = s.index[d][x];
  const In *p = s.at(i);
  for (int c = 0; c < s.channels; c++) out[c] = saturate<Out>(p[c]);
}

// Any element: the neighbours are looked up one by one.
template <class Out, int kDims, class In>
inline void linear(Out *out, const Source<kDims, In> &s, int64_t x) {
  constexpr int kTaps = 1 << kDims;
  const In *p[kTaps];
  for (int t = 0; t < kTaps; t++) {
    int64_t i[kDims];
    for (int d = 0; d < kDims; d++) i[d] = s.index[d][x] + (t >> d & 1);
    p[t] = s.at(i);
  }
  for (int c = 0; c < s.channels; c++) {
    float v[kTaps];
    for (int t = 0; t < kTaps; t++) v[t] = (float)p[t][c];
    for (int d = 0; d < kDims; d++)
      for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], s.weight[d][x]);
    out[c] = saturate<Out>(v[0]);
  }
}

// Elements all of whose neighbours lie inside.
template <class Out, int kDims, class In>
CLONES void linear_inside(Out *__restrict out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
  const int channels = s.channels;
  constexpr int kTaps = 1 << kDims;
  int64_t neighbour[kTaps];
  for (int t = 0; t < kTaps; t++) {
    neighbour[t] = 0;
    for (int d = 0; d < kDims; d++) neighbour[t] += (t >> d & 1) * s.step[d];
  }
  for (int64_t x = begin; x < end; x++) {
    const In *p = s.data;
    for (int d = 0; d < kDims; d++) p += s.index[d][x] * s.step[d];
    for (int c = 0; c < channels; c++) {
      float v[kTaps];
      for (int t = 0; t < kTaps; t++) v[t] = (float)p[neighbour[t] + c];
      for (int d = 0; d < kDims; d++)
        for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], s.weight[d][x]);
      out[x * channels + c] = saturate<Out>(v[0]);
    }
  }
}

#ifdef __x86_64__
// As linear_inside for images of three bytes: both rows of neighbours at once.
template <class Out>
__attribute__((target("avx2"))) void linear_inside_avx2(Out *__restrict out, const Source<2, uint8_t> &s, int64_t begin,
                                                        int64_t end) {
  const __m128i left = _mm_setr_epi8(0, 1, 2, -1, 8, 9, 10, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m128i right = _mm_setr_epi8(3, 4, 5, -1, 11, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m128 half_step = _mm_set1_ps(0.5f);
  const int64_t down = s.step[1];
  auto word = [](const uint8_t *p) { return (int)p[0] | p[1] << 8; };
  auto quad = [](const uint8_t *p) {
    int v;
    __builtin_memcpy(&v, p, 4);
    return v;
  };
  for (int64_t x = begin; x < end; x++) {
    const uint8_t *p = s.data + s.index[1][x] * down + (int64_t)s.index[0][x] * 3;
    __m128i v = _mm_insert_epi16(_mm_cvtsi32_si128(quad(p)), word(p + 4), 2);
    v = _mm_insert_epi16(_mm_insert_epi32(v, quad(p + down), 2), word(p + down + 4), 6);
    const __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(v, left)));
    const __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(v, right)));
    const __m256 rows = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), _mm256_set1_ps(s.weight[0][x])));
    const __m128 upper = _mm256_castps256_ps128(rows), lower = _mm256_extractf128_ps(rows, 1);
    const __m128 value = _mm_add_ps(upper, _mm_mul_ps(_mm_sub_ps(lower, upper), _mm_set1_ps(s.weight[1][x])));
    if constexpr (sizeof(Out) == 1) {
      __m128i whole = _mm_cvttps_epi32(value);
      const __m128 rest = _mm_sub_ps(value, _mm_cvtepi32_ps(whole));
      whole = _mm_sub_epi32(whole, _mm_castps_si128(_mm_cmpge_ps(rest, half_step)));
      whole = _mm_packus_epi16(_mm_packus_epi32(whole, whole), whole);
      const int pixel = _mm_cvtsi128_si32(whole);
      __builtin_memcpy(out + 3 * x, &pixel, 3);
    } else {
      _mm_storel_pi((__m64 *)(out + 3 * x), value);
      _mm_store_ss((float *)(out + 3 * x + 2), _mm_movehl_ps(value, value));
    }
  }
}
#endif

template <class Out, int kDims, class In>
void linear_inside_fastest(Out *out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
#ifdef __x86_64__
  if constexpr (kDims == 2 && sizeof(In) == 1) {
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2 && s.channels == 3) return linear_inside_avx2(out, s, begin, end);
  }
#endif
  linear_inside(out, s, begin, end);
}

template <class Out, int kDims, class In>
CLONES void nearest_inside(Out *__restrict out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
  const int channels = s.channels;
  for (int64_t x = begin; x < end; x++) {
    const In *p = s.data;
    for (int d = 0; d < kDims; d++) p += s.index[d][x] * s.step[d];
    if (channels == 3) {
      const Out o[3] = {saturate<Out>(p[0]), saturate<Out>(p[1]), saturate<Out>(p[2])};
      __builtin_memcpy(out + 3 * x, o, sizeof o);
    } else {
      for (int c = 0; c < channels; c++) out[x * channels + c] = saturate<Out>(p[c]);
    }
  }
}

}  // namespace
