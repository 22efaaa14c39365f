// SPDX-License-Identifier: Apache-2.0
// Pixels at any place of an image, on the GPU.
#pragma once
#include "core/gpu.h"
#include "geometry/sampling.h"

template <class T>
struct Image {
  const T *data;
  int64_t channel;       // elements between channels,
  int32_t across, down;  // columns, rows
  int32_t width, height;
  // Of a tensor's coordinates X and Y.
  template <class K, int X, int Y>
  DEVICE void begin(const Place<K> &place, const Tensor &row) {
    data = place.data, channel = K::kUnit ? place.channel : 0;
    across = (int32_t)place.step[X], down = (int32_t)place.step[Y];
    width = (int32_t)K::extent(row, X), height = (int32_t)K::extent(row, Y);
  }
  DEVICE const T *at(int32_t x, int32_t y) const { return data + ((int64_t)y * down + (int64_t)x * across); }
  DEVICE bool has(int32_t x, int32_t y) const {
    return (uint32_t)x < (uint32_t)width && (uint32_t)y < (uint32_t)height;
  }
};

// The pixel (x, y), or what stands there.
template <int BORDER, class Value, int C, class T>
DEVICE void read_pixel(Value (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, const Value (&fill)[C]) {
  if (!image.has(x, y)) {
    if (BORDER == kBorderConstant || image.width == 0 || image.height == 0) {
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = fill[c];
      return;
    }
    x = border_index(x, image.width, BORDER), y = border_index(y, image.height, BORDER);
  }
  const T *p = image.at(x, y);
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = saturate<Value>(load(p + c * image.channel));
}

// From TAPS neighbours along each axis, by loops that stay loops: the code of all borders is long.
template <int TAPS, int BORDER, int C, class T>
DEVICE void filter_taps(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy,
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

template <int BORDER, int C, class T>
DEVICE void linear_taps(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy,
                        const float (&fill)[C]) {
  if ((uint32_t)x < (uint32_t)(image.width - 1) && (uint32_t)y < (uint32_t)(image.height - 1) && image.width > 0 &&
      image.height > 0) {
    const T *p = image.at(x, y), *q = p + image.down;
#pragma unroll
    for (int c = 0; c < C; c++, p += image.channel, q += image.channel)
      pixel[c] = warp_mix(warp_mix((float)load(p), (float)load(p + image.across), qx),
                          warp_mix((float)load(q), (float)load(q + image.across), qx), qy);
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
template <int INTERP, int BORDER, class Out, int C, class T>
DEVICE void sample_between(Out (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy,
                           const T (&fill)[C]) {
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
