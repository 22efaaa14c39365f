// SPDX-License-Identifier: Apache-2.0
// Pixels at any place of an image, on the GPU.
#pragma once
#include "core/gpu_gather.h"
#include "geometry/sampling.h"

// An image in a tensor of kind K.
template <class K>
struct Image {
  typedef typename K::T T;
  static constexpr int C = K::C;
  static constexpr bool kTogether = K::kUnit && K::kInterleaved;  // the channels of a pixel are neighbours
  static constexpr bool kBytes = kTogether && C == 3 && sizeof(T) == 1;
  const T *data;
  int64_t channel;       // elements between channels,
  int32_t across, down;  // columns, rows
  int32_t width, height;
  int32_t inner_width, inner_height;  // places with neighbours to the right and below
  bool is_aligned;                    // pixels lie at multiples of their size
  // Of a tensor's coordinates X and Y.
  template <int X, int Y>
  DEVICE void begin(const Place<K> &place, const Tensor &row) {
    data = place.data, channel = kTogether ? 1 : K::kUnit ? place.channel : 0;
    across = kTogether ? C : (int32_t)place.step[X], down = (int32_t)place.step[Y];
    width = (int32_t)K::extent(row, X), height = (int32_t)K::extent(row, Y);
    inner_width = width > 0 && height > 0 ? width - 1 : 0, inner_height = height > 0 ? height - 1 : 0;
    is_aligned = ((unsigned long long)data & (C * sizeof(T) - 1)) == 0;
  }
  DEVICE const T *at(int32_t x, int32_t y) const { return data + ((int64_t)y * down + (int64_t)x * across); }
  DEVICE bool has(int32_t x, int32_t y) const {
    return (uint32_t)x < (uint32_t)width && (uint32_t)y < (uint32_t)height;
  }
  DEVICE void load_pixel(T (&pixel)[C], const T *p) const {
    if constexpr (kBytes) {
      const unsigned ahead = (unsigned)(unsigned long long)p & 3;
      const uint32_t *word = (const uint32_t *)((unsigned long long)p & ~3ull);
      const uint32_t low = __ldg(word), high = ahead > 1 ? __ldg(word + 1) : 0;
      const uint32_t x = __funnelshift_r(low, high, 8 * ahead);
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = (T)(x >> 8 * c);
    } else if constexpr (kTogether && (C == 2 || C == 4) && C * sizeof(T) <= 16) {
      if (is_aligned) {
        T x[C] __attribute__((aligned(16)));
        load_aligned(x, p);
#pragma unroll
        for (int c = 0; c < C; c++) pixel[c] = x[c];
        return;
      }
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = load(p + c);
    } else {
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = load(p + c * channel);
    }
  }
  // A share q of the way from the pixel at p to the next one of its row.
  DEVICE void mix_pair(float (&mixed)[C], const T *p, float q) const {
    if constexpr (kBytes) {
      // Six bytes are in two words or three. A byte behind the exponent of 2^23 is 2^23 more than it is as a float.
      constexpr float kBias = 8388608.0f;
      const unsigned ahead = (unsigned)(unsigned long long)p & 3;
      const uint32_t *word = (const uint32_t *)((unsigned long long)p & ~3ull);
      const uint32_t w0 = __ldg(word), w1 = __ldg(word + 1), w2 = ahead == 3 ? __ldg(word + 2) : 0;
      const uint32_t low = __funnelshift_r(w0, w1, 8 * ahead), high = __funnelshift_r(w1, w2, 8 * ahead);
#pragma unroll
      for (int c = 0; c < C; c++) {
        const float a = __uint_as_float(__byte_perm(low, 0x4B000000u, 0x7440 | c));
        const float b = __uint_as_float(c == 0 ? __byte_perm(low, 0x4B000000u, 0x7443)
                                               : __byte_perm(high, 0x4B000000u, 0x7440 | (c - 1)));
        mixed[c] = (a - kBias) + (b - a) * q;
      }
    } else {
      T a[C], b[C];
      load_pixel(a, p);
      load_pixel(b, p + across);
#pragma unroll
      for (int c = 0; c < C; c++) mixed[c] = warp_mix((float)a[c], (float)b[c], q);
    }
  }
};

// The pixel (x, y), or what stands there.
template <int BORDER, class Value, int C, class K>
DEVICE void read_pixel(Value (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, const Value (&fill)[C]) {
  if (!image.has(x, y)) {
    if (BORDER == kBorderConstant || image.width == 0 || image.height == 0) {
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = fill[c];
      return;
    }
    x = border_index(x, image.width, BORDER), y = border_index(y, image.height, BORDER);
  }
  typename K::T found[C];
  image.load_pixel(found, image.at(x, y));
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = saturate<Value>(found[c]);
}

// From TAPS neighbours along each axis, by loops that stay loops: the code of all borders is long.
template <int TAPS, int BORDER, int C, class K>
DEVICE void filter_taps(float (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, float qx, float qy,
                        const float (&fill)[C]) {
  float wx[TAPS], wy[TAPS];
  tap_weights<TAPS>(qx, wx);
  tap_weights<TAPS>(qy, wy);
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = 0;
#pragma unroll 1
  for (int j = 0; j < TAPS; j++) {
    float row[C] = {};
#pragma unroll 1
    for (int i = 0; i < TAPS; i++) {
      float tap[C];
      read_pixel<BORDER>(tap, image, x + 1 - TAPS / 2 + i, y + 1 - TAPS / 2 + j, fill);
#pragma unroll
      for (int c = 0; c < C; c++) row[c] += wx[i] * tap[c];
    }
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] += wy[j] * row[c];
  }
}

template <int BORDER, int C, class K>
DEVICE void linear_taps(float (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, float qx, float qy,
                        const float (&fill)[C]) {
  if ((uint32_t)x < (uint32_t)image.inner_width && (uint32_t)y < (uint32_t)image.inner_height) {
    const typename K::T *p = image.at(x, y);
    float above[C], below[C];
    image.mix_pair(above, p, qx);
    image.mix_pair(below, p + image.down, qx);
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = warp_mix(above[c], below[c], qy);
    return;
  }
  float row[2][C] = {};
#pragma unroll 1
  for (int j = 0; j < 2; j++) {
    float left[C], right[C];
    read_pixel<BORDER>(left, image, x, y + j, fill);
    read_pixel<BORDER>(right, image, x + 1, y + j, fill);
#pragma unroll
    for (int c = 0; c < C; c++) {
      row[0][c] = row[1][c];
      row[1][c] = warp_mix(left[c], right[c], qx);
    }
  }
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = warp_mix(row[0][c], row[1][c], qy);
}

// C channels between the pixel (x, y) and the next ones, at a share (qx, qy) of the way; the nearest neighbour is (x,
// y) itself. INTERP is an Interpolation.
template <int INTERP, int BORDER, class Out, int C, class K>
DEVICE void sample_between(Out (&pixel)[C], const Image<K> &image, int32_t x, int32_t y, float qx, float qy,
                           const typename K::T (&fill)[C]) {
  if constexpr (INTERP == kNearest) {
    Out outside[C];
#pragma unroll
    for (int c = 0; c < C; c++) outside[c] = saturate<Out>(fill[c]);
    read_pixel<BORDER>(pixel, image, x, y, outside);
  } else {
    float value[C], outside[C];
#pragma unroll
    for (int c = 0; c < C; c++) outside[c] = (float)fill[c];
    if constexpr (INTERP == kLinear)
      linear_taps<BORDER>(value, image, x, y, qx, qy, outside);
    else
      filter_taps<INTERP == kCubic ? 4 : 6, BORDER>(value, image, x, y, qx, qy, outside);
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = saturate<Out>(value[c]);
  }
}
