// SPDX-License-Identifier: Apache-2.0
// Frames of a sequence, each a picture in a file of its own.
#pragma once
#include "core/tensor.h"

struct SequenceArgs {
  int64_t most_pixels;  // of a frame
  int32_t image_type;
};
