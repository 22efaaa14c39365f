// SPDX-License-Identifier: Apache-2.0
// Resamples signals to another rate.
#pragma once
#include "core/tensor.h"

struct AudioResampleArgs {
  double in_rate, out_rate;
  float factor, offset;  // applied to the input to bring its range to the output's
  int32_t lobes;
  int32_t antialias;
};
