// SPDX-License-Identifier: Apache-2.0
// Pictures that are the frames of a sequence.
#pragma once
#include "core/kernel.h"

struct FrameSize {
  int64_t height, width, channels;
};

// Fails for what is no picture, or has more pixels than `most`.
FrameSize frame_size(const void *encoded, int64_t size, int32_t image_type, int64_t most);
// Writes HWC pixels of the extents that frame_size said.
void decode_frame(const void *encoded, int64_t size, int32_t image_type, FrameSize extents, uint8_t *pixels,
                  Scratch &scratch);
