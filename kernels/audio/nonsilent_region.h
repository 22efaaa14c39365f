// SPDX-License-Identifier: Apache-2.0
// Where a signal is loud: the mean square of a sliding window reaches a share of the loudest, or of a reference.
#pragma once
#include "core/tensor.h"

struct NonsilentRegionArgs {
  float threshold;  // as a share of the reference
  float reference;  // power; 0: the largest mean square
  int32_t window_length;
  int32_t reset_interval;  // so many windows the running sum is computed anew; -1: never
};
