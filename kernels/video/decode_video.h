// SPDX-License-Identifier: Apache-2.0
// Frames of an encoded video, as RGB or YCbCr.
#pragma once
#include "core/tensor.h"

struct DecodeVideoArgs {
  int64_t index;          // VideoInfo::index
  const int32_t *frames;  // number of the frame for each frame of the output; -1: filled with `fill`
  int64_t y, x;           // where the output begins in the picture
  uint8_t fill[4];        // by channel
  int32_t as_ycbcr;       // the stream's own colours instead of RGB
};

// What the container says of a video. Written by plan_videos.
struct VideoInfo {
  int64_t frames;  // 0: could not be read
  int64_t height, width;
  int64_t index;  // address of its VideoIndex
};
