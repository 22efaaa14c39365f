// SPDX-License-Identifier: Apache-2.0
// Minimum or maximum along some axes.
#pragma once
#include "reductions/reduce_ops.h"

struct ExtremumArgs {
  uint8_t reduced[kMaxDims];  // per axis: whether it is reduced
  int32_t largest;
};
