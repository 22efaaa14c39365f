// SPDX-License-Identifier: Apache-2.0
// Signals at another sampling rate.
#pragma once
#include "core/tensor.h"

struct AudioResampleArgs {
  double in_rate, out_rate;
  float factor, offset;  // applied to the input: they bring its range to that of the output
  int32_t lobes;
  int32_t antialias;
};
