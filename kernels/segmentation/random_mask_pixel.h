// SPDX-License-Identifier: Apache-2.0
// The position of a random element of in[0]; of the foreground, if `foreground` is set and it is not empty.
#pragma once
#include "core/tensor.h"

struct RandomMaskPixelArgs {
  uint64_t key, position;
  uint32_t epoch;
  int32_t foreground, by_value;  // by_value: the foreground equals `value`; else it is above `threshold`
  int32_t value;
  float threshold;
};
