// SPDX-License-Identifier: Apache-2.0
// Affine transforms of a whole batch, row-major (d, d + 1) each: columns in, columns out. All sums are of doubles.
#include <cmath>
#include <utility>

#include "core/kernel.h"

namespace {
constexpr int kMostDims = 16;

// out = after * before, both without their last row, which is (0, ..., 0, 1).
void multiply(double *out, const double *after, const double *before, int d) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= d; j++) {
      double sum = j == d ? after[i * (d + 1) + d] : 0;
      for (int k = 0; k < d; k++) sum += after[i * (d + 1) + k] * before[k * (d + 1) + j];
      out[i * (d + 1) + j] = sum;
    }
}
}  // namespace

// The transform that applies n of each of `count` columns one after the other. 0 if there are too many dimensions.
EXPORT int32_t combine_transforms(const float *const *columns, int32_t count, int64_t n, int32_t d, float *out) {
  if (d > kMostDims) return 0;
  const int size = d * (d + 1);
  double buffers[3][kMostDims * (kMostDims + 1)];
  for (int64_t i = 0; i < n; i++) {
    double *product = buffers[0], *next = buffers[1];
    for (int k = 0; k < size; k++) product[k] = columns[0][i * size + k];
    for (int c = 1; c < count; c++) {
      for (int k = 0; k < size; k++) buffers[2][k] = columns[c][i * size + k];
      multiply(next, buffers[2], product, d);
      std::swap(product, next);
    }
    for (int k = 0; k < size; k++) out[i * size + k] = (float)product[k];
  }
  return 1;
}

// Turns in the plane by `angle` (n) degrees about `center` (n, 2), or about the origin if that is null: (n, 2, 3). 0 if
// one is not finite.
EXPORT int32_t rotation_transforms(const float *angle, const float *center, int64_t n, double *out) {
  for (int64_t i = 0; i < n; i++, out += 6) {
    const double radians = angle[i] * (float)(M_PI / 180), c = std::cos(radians), s = std::sin(radians);
    const double x = center ? center[2 * i] : 0, y = center ? center[2 * i + 1] : 0;
    out[0] = c, out[1] = -s, out[2] = x - (c * x - s * y);
    out[3] = s, out[4] = c, out[5] = y - (s * x + c * y);
    if (!std::isfinite(out[2] + out[5] + c)) return 0;
  }
  return 1;
}
