// SPDX-License-Identifier: Apache-2.0
// Permutes the axes of a sample.
#pragma once
#include "core/tensor.h"

struct TransposeArgs {
  int32_t perm[kMaxDims];   // per axis of the output: the axis of the input
  int64_t start[kMaxDims];  // per axis of the input: begin of the part that is read
};
