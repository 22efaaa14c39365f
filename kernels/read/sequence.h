// SPDX-License-Identifier: Apache-2.0
// Frames of a sequence, each a picture in its own file.
#pragma once
#include "core/tensor.h"

struct SequenceArgs {
  int64_t most_pixels;  // per frame
  int32_t image_type;
};
