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

// The values of C channels at (u, v), where (0, 0) is the corner of a pixel. interp: 0 nearest, 1 linear, 2 cubic.
template <int C, class T>
DEVICE void sample(float (&pixel)[C], const Image<T> &image, float u, float v, int interp, int border,
                   const float (&fill)[C]) {
  float qx, qy;
  const int32_t x = warp_split(u, 0, interp, false, &qx), y = warp_split(v, 0, interp, false, &qy);
  auto tap = [&](int32_t i, int32_t j, int c) {
    if (i < 0 || i >= image.width || j < 0 || j >= image.height) {
      if (border == kBorderConstant || image.width == 0 || image.height == 0) return fill[c];
      i = border_index(i, image.width, border), j = border_index(j, image.height, border);
    }
    return (float)load(image.data + c * image.channel + i * image.across + j * image.down);
  };
  if (interp == 0) {
#pragma unroll
    for (int c = 0; c < C; c++) pixel[c] = tap(x, y, c);
  } else if (interp == 1) {
#pragma unroll
    for (int c = 0; c < C; c++)
      pixel[c] = warp_mix(warp_mix(tap(x, y, c), tap(x + 1, y, c), qx),
                          warp_mix(tap(x, y + 1, c), tap(x + 1, y + 1, c), qx), qy);
  } else {
    float wx[4], wy[4];
    cubic_weights(qx, wx);
    cubic_weights(qy, wy);
#pragma unroll
    for (int c = 0; c < C; c++) {
      float sum = 0;
      for (int j = 0; j < 4; j++) {
        float row = 0;
        for (int i = 0; i < 4; i++) row += wx[i] * tap(x - 1 + i, y - 1 + j, c);
        sum += wy[j] * row;
      }
      pixel[c] = sum;
    }
  }
}
