// SPDX-License-Identifier: Apache-2.0
// out = multiplier * log10(max(ratio, in / reference)).
#pragma once
#include "core/tensor.h"

struct ToDecibelsArgs {
  float multiplier;
  float smallest;   // ratio
  float reference;  // 0: the largest element of the sample
};
