// SPDX-License-Identifier: Apache-2.0
// Elements of a sample at regular distances along each axis.
#pragma once
#include "core/tensor.h"

struct SubscriptArgs {
  int64_t base;            // index of the first element in the stored part of the input
  int64_t step[kMaxDims];  // per axis of the output: distance between elements in the input
};
