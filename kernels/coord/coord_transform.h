// SPDX-License-Identifier: Apache-2.0
// Affine transform of points: y = M x + T.
#pragma once
#include "core/convert.h"

constexpr int kCoordDims = 6;  // most coordinates of a point

struct CoordTransformArgs {
  float matrix[36];  // (rows, columns), row-major; columns is the length of an input point
  float shift[6];
};

template <class Out, class In>
SHARED void coord_transform(Out *out, const In *in, const float *matrix, const float *shift, int rows, int columns) {
  for (int r = 0; r < rows; r++) {
    float sum = matrix[r * columns] * (float)in[0];
    for (int c = 1; c < columns; c++) sum += matrix[r * columns + c] * (float)in[c];
    out[r] = saturate<Out>(sum + shift[r]);
  }
}
