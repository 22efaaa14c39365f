// SPDX-License-Identifier: Apache-2.0
// Pixels at any place of an image, on the GPU.
#pragma once
#include "core/gpu.h"
#include "geometry/sampling.h"

template <class T>
struct Image {
  const T *data;
  int64_t channel, across, down;  // elements between channels, columns, rows
  int32_t width, height;
};

// The pixel (x, y), or what stands there.
template <int C, class T>
DEVICE void read_pixel(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, int border,
                       const float (&fill)[C]) {
  if (x < 0 || x >= image.width || y < 0 || y >= image.height) {
    if (border == kBorderConstant || image.width == 0 || image.height == 0) {
#pragma unroll
      for (int c = 0; c < C; c++) pixel[c] = fill[c];
      return;
    }
    x = border_index(x, image.width, border), y = border_index(y, image.height, border);
  }
  const T *p = image.data + x * image.across + y * image.down;
#pragma unroll
  for (int c = 0; c < C; c++) pixel[c] = (float)load(p + c * image.channel);
}

// From TAPS neighbours along each axis, by loops that stay loops: the code of all borders is long.
template <int TAPS, int C, class T>
DEVICE void filter_taps(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy, int border,
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
      read_pixel(tap, image, x + 1 - TAPS / 2 + i, y + 1 - TAPS / 2 + j, border, fill);
#pragma unroll
      for (int c = 0; c < C; c++) row[c] += wx[i] * tap[c];
    }
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] += wy[j] * row[c];
  }
}

// The values of C channels between the pixel (x, y) and the next ones, at a share (qx, qy) of the way; the nearest
// neighbour is (x, y) itself. `interp` is an Interpolation, at most MOST.
template <int MOST = kCubic, int C, class T>
DEVICE void sample_between(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy,
                           int interp, int border, const float (&fill)[C]) {
  if (interp == kNearest) {
    read_pixel(pixel, image, x, y, border, fill);
  } else if (interp == kLinear) {
    if (x >= 0 && y >= 0 && x < image.width - 1 && y < image.height - 1) {
      const T *p = image.data + x * image.across + y * image.down;
#pragma unroll
      for (int c = 0; c < C; c++, p += image.channel) {
        const float upper = warp_mix((float)load(p), (float)load(p + image.across), qx);
        const float lower = warp_mix((float)load(p + image.down), (float)load(p + image.across + image.down), qx);
        pixel[c] = warp_mix(upper, lower, qy);
      }
      return;
    }
    float row[2][C] = {};
#pragma unroll 1
    for (int j = 0; j < 2; j++) {
      float left[C], right[C];
      read_pixel(left, image, x, y + j, border, fill);
      read_pixel(right, image, x + 1, y + j, border, fill);
#pragma unroll
      for (int c = 0; c < C; c++) {
        row[0][c] = row[1][c];
        row[1][c] = warp_mix(left[c], right[c], qx);
      }
    }
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = warp_mix(row[0][c], row[1][c], qy);
  } else if (MOST < kLanczos3 || interp == kCubic) {
    filter_taps<4>(pixel, image, x, y, qx, qy, border, fill);
  } else {
    filter_taps<6>(pixel, image, x, y, qx, qy, border, fill);
  }
}

// The values of C channels at (u, v), where (0, 0) is the corner of a pixel.
template <int C, class T>
DEVICE void sample(float (&pixel)[C], const Image<T> &image, float u, float v, int interp, int border,
                   const float (&fill)[C]) {
  float qx, qy;
  const int32_t x = warp_split(u, 0, interp, false, &qx), y = warp_split(v, 0, interp, false, &qy);
  sample_between(pixel, image, x, y, qx, qy, interp, border, fill);
}
