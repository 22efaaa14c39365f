// SPDX-License-Identifier: Apache-2.0
// A value in every element, or a smaller array repeated along the axes in which it has one element.
#pragma once
#include "core/convert.h"
#include "core/tensor.h"

struct FullArgs {
  int32_t from;  // number of the input that is the value; -1: `value`
  double value;
};
