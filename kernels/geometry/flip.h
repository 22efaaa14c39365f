// SPDX-License-Identifier: Apache-2.0
// Reverses the elements along some axes.
#pragma once
#include "core/tensor.h"

struct FlipArgs {
  int64_t start[kMaxDims];  // begin of the part of the input that is read; it has the shape of the output
  uint8_t flip[kMaxDims];   // per axis
};
