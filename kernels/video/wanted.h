// SPDX-License-Identifier: Apache-2.0
// Decodes a list of frames to their places in the output.
#pragma once
#include "video/decoder.h"

inline void fill_pixels(uint8_t *out, int64_t pixels, const uint8_t *fill) {
  for (int64_t i = 0; i < pixels; i++) out[3 * i] = fill[0], out[3 * i + 1] = fill[1], out[3 * i + 2] = fill[2];
}

// `frames` are the numbers of the n frames of an output, `size` bytes each. Number -1 is made by `fill`, others by
// `make` from their picture. Repeated frames are decoded once.
void give_frames(Bytes file, const VideoIndex &index, const int32_t *frames, int64_t n, uint8_t *out, int64_t size,
                 const std::function<void(uint8_t *)> &fill,
                 const std::function<void(const Picture &, uint8_t *)> &make);
