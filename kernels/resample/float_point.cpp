// SPDX-License-Identifier: Apache-2.0
#include "resample/float_point.h"

#include <cstring>

#include "core/kernel.h"

namespace {

constexpr int kBlock = 512;  // elements whose sums fit in the L1 cache

typedef float Float4 __attribute__((vector_size(16)));

// Up to four channels in a vector; reads beyond the last channel, but does not write there.
template <int C, class Out>
inline void pixels(Out *out, const float *row, const Taps &t) {
  for (int j = 0; j < t.n; j++) {
    const float *w = t.weights.data() + (int64_t)j * t.stride, *p = row + (int64_t)(t.first[j] - t.lo) * C;
    Float4 sum = {};
    for (int k = 0; k < t.k; k++) {
      Float4 x;
      __builtin_memcpy(&x, p + k * C, sizeof x);
      sum += w[k] * x;
    }
    for (int c = 0; c < C; c++) out[(int64_t)j * C + c] = saturate<Out>((float)sum[c]);
  }
}

// Pixels with enough channels for loops over them.
template <class Out>
inline void long_pixels(Out *out, const float *row, const Taps &t, int64_t channels) {
  float sum[kBlock];
  for (int j = 0; j < t.n; j++)
    for (int64_t begin = 0; begin < channels; begin += kBlock) {
      const int m = (int)(channels - begin < kBlock ? channels - begin : kBlock);
      const float *w = t.weights.data() + (int64_t)j * t.stride, *p = row + (t.first[j] - t.lo) * channels + begin;
      for (int c = 0; c < m; c++) sum[c] = w[0] * p[c];
      for (int k = 1; k < t.k; k++)
        for (int c = 0; c < m; c++) sum[c] += w[k] * p[k * channels + c];
      for (int c = 0; c < m; c++) out[j * channels + begin + c] = saturate<Out>(sum[c]);
    }
}

template <class In>
CLONES void combine(float *row, const In *in, int64_t pitch, const float *weights, int taps, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int m = (int)(n - begin < kBlock ? n - begin : kBlock);
    float *sum = row + begin;
    bool first = true;
    for (int k = 0; k < taps; k++) {
      const float w = weights[k];
      const In *r = in + k * pitch + begin;
      if (w == 0) continue;
      if (first)
        for (int i = 0; i < m; i++) sum[i] = w * (float)r[i];
      else
        for (int i = 0; i < m; i++) sum[i] += w * (float)r[i];
      first = false;
    }
  }
}

template <class Out>
CLONES void along(Out *out, const float *row, const Taps &t, int64_t channels) {
  switch (channels) {
    case 1:
      return pixels<1>(out, row, t);
    case 2:
      return pixels<2>(out, row, t);
    case 3:
      return pixels<3>(out, row, t);
    case 4:
      return pixels<4>(out, row, t);
    default:
      return long_pixels(out, row, t, channels);
  }
}

template <int C, class T>
inline void pick(T *out, const T *in, const Taps &t) {
  for (int j = 0; j < t.n; j++) __builtin_memcpy(out + (int64_t)j * C, in + (int64_t)t.first[j] * C, C * sizeof(T));
}

// Copies four bytes per pixel of three, where both sides have four.
inline void pick_rgb(uint8_t *out, const uint8_t *in, const Taps &t) {
  const int last = (int)t.key.in_length - 1;
  for (int j = 0; j < t.n; j++) {
    const uint8_t *p = in + (int64_t)t.first[j] * 3;
    if (t.first[j] < last && j < t.n - 1)
      __builtin_memcpy(out + (int64_t)j * 3, p, 4);
    else
      for (int c = 0; c < 3; c++) out[(int64_t)j * 3 + c] = p[c];
  }
}

}  // namespace

template <class In>
void combine_rows(float *row, const In *in, int64_t pitch, const float *weights, int taps, int64_t n) {
  combine(row, in, pitch, weights, taps, n);
}

template <class Out>
void resample_row(Out *out, const float *row, const Taps &t, int64_t channels) {
  along(out, row, t, channels);
}

template <class T>
void pick_pixels(T *out, const T *in, const Taps &t, int64_t channels) {
  switch (channels) {
    case 1:
      return pick<1>(out, in, t);
    case 3:
      return pick<3>(out, in, t);
    case 4:
      return pick<4>(out, in, t);
  }
  for (int j = 0; j < t.n; j++) memcpy(out + j * channels, in + t.first[j] * channels, channels * sizeof(T));
}

#define INSTANTIATE(T)                                                                  \
  template void combine_rows(float *, const T *, int64_t, const float *, int, int64_t); \
  template void resample_row(T *, const float *, const Taps &, int64_t);                \
  template void pick_pixels(T *, const T *, const Taps &, int64_t);
INSTANTIATE(uint8_t)
INSTANTIATE(uint16_t)
INSTANTIATE(int16_t)
INSTANTIATE(float)
