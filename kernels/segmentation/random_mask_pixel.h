// SPDX-License-Identifier: Apache-2.0
// The place of a random element of in[0], of those in the foreground only if there are any and `foreground` is set.
#pragma once
#include "core/tensor.h"

struct RandomMaskPixelArgs {
  uint64_t key, position;
  uint32_t epoch;
  int32_t foreground, by_value;  // by_value: the foreground is what equals `value`, else what is above `threshold`
  int32_t value;
  float threshold;
};
