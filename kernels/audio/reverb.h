// SPDX-License-Identifier: Apache-2.0
// Convolution of a signal with the impulse response of a room.
#pragma once
#include "core/tensor.h"

struct ReverbArgs {
  int32_t normalize;   // the output has the power of the input
  int32_t keep_delay;  // it is late by what the direct sound takes
};
