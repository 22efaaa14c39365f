// SPDX-License-Identifier: Apache-2.0
// The non-silent region: where the mean square of a sliding window reaches a share of the largest, or of a reference.
#pragma once
#include "core/tensor.h"

struct NonsilentRegionArgs {
  float threshold;  // as a share of the reference
  float reference;  // power; 0: the largest mean square
  int32_t window_length;
  int32_t reset_interval;  // windows after which the running sum is recomputed; -1: never
};
