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

// From TAPS neighbours along each axis; `tap(i, j, c)` is a channel of the pixel (i, j).
template <int TAPS, int C, class Tap>
DEVICE void filter_taps(float (&pixel)[C], int32_t x, int32_t y, float qx, float qy, Tap tap) {
  float wx[TAPS], wy[TAPS];
  tap_weights<TAPS>(qx, wx);
  tap_weights<TAPS>(qy, wy);
#pragma unroll
  for (int c = 0; c < C; c++) {
    float sum = 0;
    for (int j = 0; j < TAPS; j++) {
      float row = 0;
      for (int i = 0; i < TAPS; i++) row += wx[i] * tap(x + 1 - TAPS / 2 + i, y + 1 - TAPS / 2 + j, c);
      sum += wy[j] * row;
    }
    pixel[c] = sum;
  }
}

// The values of C channels between the pixel (x, y) and the next ones, at a share (qx, qy) of the way; the nearest
// neighbour is (x, y) itself. `interp` is an Interpolation, at most MOST.
template <int MOST = kCubic, int C, class T>
DEVICE void sample_between(float (&pixel)[C], const Image<T> &image, int32_t x, int32_t y, float qx, float qy,
                           int interp, int border, const float (&fill)[C]) {
  const bool inside = interp < kCubic && x >= 0 && y >= 0 && x < image.width - interp && y < image.height - interp;
  if (inside) {
    const T *p = image.data + x * image.across + y * image.down;
#pragma unroll
    for (int c = 0; c < C; c++, p += image.channel) {
      const float v = (float)load(p);
      pixel[c] = v;
      if (interp == kLinear)
        pixel[c] = warp_mix(warp_mix(v, (float)load(p + image.across), qx),
                            warp_mix((float)load(p + image.down), (float)load(p + image.across + image.down), qx), qy);
    }
    return;
  }
  auto tap = [&](int32_t i, int32_t j, int c) {
    if (i < 0 || i >= image.width || j < 0 || j >= image.height) {
      if (border == kBorderConstant || image.width == 0 || image.height == 0) return fill[c];
      i = border_index(i, image.width, border), j = border_index(j, image.height, border);
    }
    return (float)load(image.data + c * image.channel + i * image.across + j * image.down);
  };
  if (interp == kNearest) {
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = tap(x, y, c);
  } else if (interp == kLinear) {
#pragma unroll
    for (int c = 0; c < C; c++)
      pixel[c] = warp_mix(warp_mix(tap(x, y, c), tap(x + 1, y, c), qx),
                          warp_mix(tap(x, y + 1, c), tap(x + 1, y + 1, c), qx), qy);
  } else if (MOST < kLanczos3 || interp == kCubic) {
    filter_taps<4>(pixel, x, y, qx, qy, tap);
  } else {
    filter_taps<6>(pixel, x, y, qx, qy, tap);
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
