// SPDX-License-Identifier: Apache-2.0
// Points mirrored along some axes: x' = sign * x + offset per coordinate.
#pragma once
#include "core/tensor.h"

struct CoordFlipArgs {
  float sign[3];    // 1 or -1
  float offset[3];  // -0 if the sign is 1, so that x + offset is x
};
