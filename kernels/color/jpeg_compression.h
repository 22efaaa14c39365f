// SPDX-License-Identifier: Apache-2.0
// An image as it comes back from JPEG compression.
#pragma once
#include "core/tensor.h"

struct JpegCompressionArgs {
  int32_t quality;  // 1 to 100
  int32_t y, x;     // where the window begins that is wanted
};
