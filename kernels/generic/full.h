// SPDX-License-Identifier: Apache-2.0
// Fills with a value, or broadcasts a smaller array.
#pragma once
#include "core/convert.h"
#include "core/tensor.h"

struct FullArgs {
  int32_t from;  // index of the input that holds the value; -1: `value`
  double value;
};
