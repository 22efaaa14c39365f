// SPDX-License-Identifier: Apache-2.0
#include "geometry/warp.h"

#include <algorithm>
#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/kernel.h"

namespace {

// Where a row of the output lies along one axis of the input: the lower of the two neighbours and the weight of the
// upper one.
CLONES void axis_row(int32_t *__restrict index, float *__restrict weight, int64_t first, int64_t n, float step,
                     float rest, int64_t extent, bool linear, bool clamp) {
  for (int64_t x = 0; x < n; x++)
    index[x] = warp_split(warp_coordinate(step, first + x, rest), extent, linear, clamp, weight + x);
}

// An input and where a row of the output lies in it. Axes are x, y(, z).
template <int kDims, class In>
struct Source {
  const In *data;
  const In *fill;  // one element of all channels, or null to repeat the border
  int64_t extent[kDims], step[kDims];
  int channels;
  const int32_t *index[kDims];
  const float *weight[kDims];

  const In *at(const int64_t *i) const {
    int64_t offset = 0;
    for (int d = 0; d < kDims; d++) {
      int64_t k = i[d];
      if (k < 0 || k >= extent[d]) {
        if (fill) return fill;
        k = k < 0 ? 0 : extent[d] - 1;
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

template <class Out, int kDims, class In>
void warp_row(Out *out, const Source<kDims, In> &s, int64_t n, bool is_linear, Out outside_value) {
  const int hi = is_linear ? -1 : 0;
  int64_t touching = 0, untouched = n, inside, outside;
  if (s.fill) s.run_within(n, hi, 0, &touching, &untouched);
  s.run_within(n, 0, hi, &inside, &outside);
  if (inside == outside) inside = outside = untouched;
  auto each = [&](int64_t begin, int64_t end, auto one) {
    for (int64_t x = begin; x < end; x++) one(out + x * s.channels, x);
  };
  auto filled = [&](Out *o, int64_t) { std::fill(o, o + s.channels, outside_value); };
  auto looked_up = [&](Out *o, int64_t x) { is_linear ? linear(o, s, x) : nearest(o, s, x); };
  each(0, touching, filled);
  each(touching, inside, looked_up);
  if (!is_linear)
    nearest_inside(out, s, inside, outside);
  else
    linear_inside_fastest(out, s, inside, outside);
  each(outside, untouched, looked_up);
  each(untouched, n, filled);
}

template <int kDims, class Out, class In>
void warp(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  Source<kDims, In> s;
  const int ndim = in->ndim, first = ndim - 1 - kDims;  // axes before the first of space are those of a sequence
  int64_t size[3] = {1, 1, 1}, frames = 1, in_frame = 1;
  s.channels = (int)in->shape[ndim - 1];
  in_frame = s.channels;
  for (int d = 0; d < kDims; d++) {
    s.extent[d] = in->shape[ndim - 2 - d], size[d] = out->shape[ndim - 2 - d];
    s.step[d] = in_frame, in_frame *= s.extent[d];
  }
  for (int d = 0; d < first; d++) frames *= in->shape[d];
  if (out->volume() == 0) return;
  if (in_frame == 0 && a.clamp) fail("the input is empty and has no border to repeat; give a fill_value");
  const int64_t n = size[0];
  In *fill = scratch.array<In>(s.channels, 0);
  for (int c = 0; c < s.channels; c++) fill[c] = saturate<In>(a.fill);
  s.fill = a.clamp ? nullptr : fill;
  // Interpolation takes the fill for an element of the input, so that it has the input's type first.
  const Out outside_value = a.linear ? saturate<Out>(saturate<In>(a.fill)) : saturate<Out>(a.fill);
  int32_t *index = scratch.array<int32_t>(n * kDims, 1);
  float *weight = scratch.array<float>(n * kDims, 2);
  for (int d = 0; d < kDims; d++) s.index[d] = index + d * n, s.weight[d] = weight + d * n;
  Out *o = out->as<Out>();
  for (int64_t z = 0; z < size[2]; z++) {
    for (int64_t y = 0; y < size[1]; y++, o += n * s.channels) {
      for (int d = 0; d < kDims; d++) {
        const float *row = a.matrix + d * (kDims + 1);
        const float rest = warp_rest(row, kDims, (float)(y + a.origin[1]), (float)(z + a.origin[2]));
        axis_row(index + d * n, weight + d * n, a.origin[0], n, row[0], rest, s.extent[d], a.linear, a.clamp);
      }
      for (int64_t f = 0; f < frames; f++) {
        s.data = in->as<In>() + f * in_frame;
        warp_row(o + f * size[2] * size[1] * n * s.channels, s, n, a.linear, outside_value);
      }
    }
  }
}

template <class Out, class In>
void warp_dims(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  a.dims == 2 ? warp<2, Out, In>(out, in, a, scratch) : warp<3, Out, In>(out, in, a, scratch);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  for_types<uint8_t, int16_t, int32_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    if (out->dtype == FLOAT) return warp_dims<float, In>(out, in, a, scratch);
    if (out->dtype == in->dtype) return warp_dims<In, In>(out, in, a, scratch);
    if constexpr (IsFloat<In>::value)
      for_types<uint8_t, int16_t, int32_t>(out->dtype,
                                           [&](auto o) { warp_dims<decltype(o), In>(out, in, a, scratch); });
    else
      fail("[internal error] no kernel for these data types");
  });
}

EXPORT_KERNEL(warp, WarpArgs, run)
