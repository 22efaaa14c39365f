// SPDX-License-Identifier: Apache-2.0
// out = matrix * in + offset for the three channels of each pixel (HWC), in float32, saturated to the output type.
#pragma once
#include "core/convert.h"

struct ColorMatrixArgs {
  float matrix[9];  // row-major
  float offset[3];
};

template <class Out, class In>
SHARED Out color_matrix_row(In a, In b, In c, const float *row, float offset) {
  return saturate<Out>(to_float(a) * row[0] + to_float(b) * row[1] + to_float(c) * row[2] + offset);
}
