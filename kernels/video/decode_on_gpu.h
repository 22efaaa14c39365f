// SPDX-License-Identifier: Apache-2.0
// Frames of an encoded video, decoded by the GPU's video engines to memory of the GPU, as RGB or YCbCr.
#pragma once
#include "core/tensor.h"

struct DecodeOnGpuArgs {
  int64_t index;          // VideoInfo::index of decode_video.h
  const int32_t *frames;  // number of the frame for each frame of the output; -1: filled with `fill`
  int64_t y, x;           // where the output begins in the picture
  uint8_t fill[4];        // by channel
  int32_t as_ycbcr;       // the stream's own colours instead of RGB
  int64_t batch;          // address of a VideoBatch
};

// What the videos of a batch share.
struct VideoBatch {
  int64_t engines;              // address of the VideoEngines
  int64_t stream;               // of the batch: what is asked of it later comes after the frames
  int64_t free;                 // a CUevent: the output's memory may be written to
  int64_t pixels_8, pixels_16;  // the kernels of frame_pixels.cu, for samples of 8 bits and more
};
