// SPDX-License-Identifier: Apache-2.0
// Decodes frames of an encoded video with the GPU's video engines into GPU memory, as RGB or YCbCr.
#pragma once
#include "core/tensor.h"

struct DecodeOnGpuArgs {
  int64_t index;          // VideoInfo::index of decode_video.h
  const int32_t *frames;  // the video's frame number for each output frame; -1: filled with `fill`
  int64_t y, x;           // origin of the output in the picture
  uint8_t fill[4];        // by channel
  int32_t as_ycbcr;       // the stream's own colours instead of RGB
  int64_t batch;          // address of a VideoBatch
};

// Shared by the videos of a batch.
struct VideoBatch {
  int64_t engines;              // address of the VideoEngines
  int64_t stream;               // the batch's: its later work comes after the frames
  int64_t free;                 // a CUevent after which the output's memory may be written
  int64_t pixels_8, pixels_16;  // the kernels of frame_pixels.cu, for samples of 8 bits and more
};
