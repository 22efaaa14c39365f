// SPDX-License-Identifier: Apache-2.0
// Another sound added to a signal, as loud as a signal-to-noise ratio says.
#pragma once
#include "core/tensor.h"

struct AddNoiseArgs {
  double ratio;   // power of the noise / power of the signal
  int64_t start;  // where in the noise it begins, at least 0
};
