// SPDX-License-Identifier: Apache-2.0
// Elements in reverse order along some axes.
#pragma once
#include "core/tensor.h"

struct FlipArgs {
  int64_t start[kMaxDims];  // the part of the input that is read begins here and has the shape of the output
  uint8_t flip[kMaxDims];   // per axis
};
