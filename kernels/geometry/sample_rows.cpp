// SPDX-License-Identifier: Apache-2.0
#include "geometry/sample_rows.h"

#include "geometry/inside_rows.h"

namespace {

// Any element, from several neighbours along each axis.
template <int INTERP, class T>
inline void filtered(T *out, const Source<2, T> &s, int64_t x) {
  constexpr int TAPS = Taps<INTERP>::kCount;
  float wx[TAPS], wy[TAPS];
  Taps<INTERP>::weights(s.weight[0][x], wx);
  Taps<INTERP>::weights(s.weight[1][x], wy);
  const T *p[TAPS][TAPS];
  for (int j = 0; j < TAPS; j++)
    for (int i = 0; i < TAPS; i++) {
      const int64_t at[2] = {s.index[0][x] + 1 - TAPS / 2 + i, s.index[1][x] + 1 - TAPS / 2 + j};
      p[j][i] = s.at(at);
    }
  for (int c = 0; c < s.channels; c++) {
    float sum = 0;
    for (int j = 0; j < TAPS; j++) {
      float row = 0;
      for (int i = 0; i < TAPS; i++) row += wx[i] * (float)p[j][i][c];
      sum += wy[j] * row;
    }
    out[c] = saturate<T>(sum);
  }
}

// Without branches, for SIMD.
CLONES bool all_inside(const int32_t *x, const int32_t *y, int64_t n, int64_t width, int64_t height) {
  const uint32_t w = width > 0 ? (uint32_t)width : 0, h = height > 0 ? (uint32_t)height : 0;
  int out = 0;
  for (int64_t i = 0; i < n; i++) out |= ((uint32_t)x[i] >= w) | ((uint32_t)y[i] >= h);
  return !out;
}

}  // namespace

template <class T>
void sample_row(T *out, const Source<2, T> &s, int64_t n, int interp) {
  const int32_t *ix = s.index[0], *iy = s.index[1];
  const int64_t width = s.extent[0] - interp, height = s.extent[1] - interp;
  constexpr int64_t kBlock = 32;
  auto inside = [&](int64_t x) { return ix[x] >= 0 && ix[x] < width && iy[x] >= 0 && iy[x] < height; };
  // Whether elements that are far outside are just the fill. Interpolation preserves it for finite numbers only.
  const bool fills = s.fill && (interp == kNearest || interp == kLinear && !IsFloat<T>::value);
  auto outside = [&](int64_t x) {
    return ix[x] < -interp || ix[x] >= s.extent[0] || iy[x] < -interp || iy[x] >= s.extent[1];
  };
  for (int64_t x = 0; x < n;) {
    int64_t end = x;
    if (interp < kCubic) {
      while (end + kBlock <= n && all_inside(ix + end, iy + end, kBlock, width, height)) end += kBlock;
      while (end < n && inside(end)) end++;
    }
    if (end > x) {
      interp ? linear_inside_fastest(out, s, x, end) : nearest_inside_fastest(out, s, x, end);
      x = end;
      continue;
    }
    do {
      T *o = out + x * s.channels;
      if (fills && outside(x))
        for (int c = 0; c < s.channels; c++) o[c] = s.fill[c];
      else if (interp == kNearest)
        nearest(o, s, x);
      else if (interp == kLinear)
        linear(o, s, x);
      else if (interp == kCubic)
        filtered<kCubic>(o, s, x);
      else
        interp == kLanczos3 ? filtered<kLanczos3>(o, s, x) : filtered<kLagrange>(o, s, x);
      x++;
    } while (x < n && (interp >= kCubic || !inside(x)));
  }
}

template void sample_row(uint8_t *, const Source<2, uint8_t> &, int64_t, int);
template void sample_row(uint16_t *, const Source<2, uint16_t> &, int64_t, int);
template void sample_row(int16_t *, const Source<2, int16_t> &, int64_t, int);
template void sample_row(float *, const Source<2, float> &, int64_t, int);
