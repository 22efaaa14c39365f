// SPDX-License-Identifier: Apache-2.0
// Frames of an encoded video, as RGB or YCbCr.
#pragma once
#include "core/tensor.h"

struct DecodeVideoArgs {
  int64_t index;          // VideoInfo::index
  const int32_t *frames;  // the video's frame number for each output frame; -1: filled with `fill`
  int64_t y, x;           // origin of the output in the picture
  uint8_t fill[4];        // by channel
  int32_t as_ycbcr;       // the stream's own colours instead of RGB
};

// What the container tells of a video. Written by plan_videos.
struct VideoInfo {
  int64_t frames;  // 0 if unreadable
  int64_t height, width;
  int64_t index;  // address of its VideoIndex
};
