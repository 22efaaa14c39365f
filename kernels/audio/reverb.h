// SPDX-License-Identifier: Apache-2.0
// Convolves a signal with the impulse response of a room.
#pragma once
#include "core/tensor.h"

struct ReverbArgs {
  int32_t normalize;   // scale the output to the input's power
  int32_t keep_delay;  // keep the delay of the direct sound
};
