// SPDX-License-Identifier: Apache-2.0
// Elements of a sample at regular distances along each axis.
#pragma once
#include "core/tensor.h"

struct SubscriptArgs {
  int64_t base;            // the element that comes first, counted in the part of the input that is there
  int64_t step[kMaxDims];  // per axis of the output: elements from one to the next
};
