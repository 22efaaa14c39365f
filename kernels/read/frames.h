// SPDX-License-Identifier: Apache-2.0
// Pictures as frames of a sequence.
#pragma once
#include "core/kernel.h"

struct FrameSize {
  int64_t height, width, channels;
};

// Fails if it is no picture, or has more pixels than `most`.
FrameSize frame_size(const void *encoded, int64_t size, int32_t image_type, int64_t most);
// Writes HWC pixels of the size returned by frame_size.
void decode_frame(const void *encoded, int64_t size, int32_t image_type, FrameSize extents, uint8_t *pixels,
                  Scratch &scratch);
