// SPDX-License-Identifier: Apache-2.0
// Affine transforms of a whole batch, each row-major (d, d + 1): columns in, columns out. Sums are in double.
#include <cmath>
#include <utility>

#include "core/kernel.h"

namespace {
constexpr int kMostDims = 16;

// out = after * before, both without the last row (0, ..., 0, 1). D: d if known at compile time, else 0.
template <int D>
void multiply(double *out, const float *after, const double *before, int dims) {
  const int d = D ? D : dims;
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= d; j++) {
      double sum = j == d ? after[i * (d + 1) + d] : 0;
      for (int k = 0; k < d; k++) sum += after[i * (d + 1) + k] * before[k * (d + 1) + j];
      out[i * (d + 1) + j] = sum;
    }
}

template <int D>
void combine(const float *const *columns, int count, bool reversed, int64_t n, int dims, float *out) {
  const int d = D ? D : dims, size = d * (d + 1), first = reversed ? count - 1 : 0, step = reversed ? -1 : 1;
  double buffers[2][kMostDims * (kMostDims + 1)];
  for (int64_t i = 0; i < n; i++) {
    double *product = buffers[0], *next = buffers[1];
    for (int k = 0; k < size; k++) product[k] = columns[first][i * size + k];
    for (int c = 1; c < count; c++) {
      multiply<D>(next, columns[first + c * step] + i * size, product, d);
      std::swap(product, next);
    }
    for (int k = 0; k < size; k++) out[i * size + k] = (float)product[k];
  }
}
}  // namespace

// Composes n transforms from each of `count` columns: the first column is applied first or, if `reversed`, last.
// Returns 0 if there are too many dimensions.
EXPORT int32_t combine_transforms(const float *const *columns, int32_t count, int32_t reversed, int64_t n, int32_t d,
                                  float *out) {
  if (d > kMostDims) return 0;
  (d == 2 ? combine<2> : d == 3 ? combine<3> : combine<0>)(columns, count, reversed, n, d, out);
  return 1;
}
EXPORT_SHORT(combine_transforms)

template <class T>
static bool rotate(const float *angle, const float *center, int64_t n, T *out) {
  for (int64_t i = 0; i < n; i++, out += 6) {
    const double radians = angle[i] * (float)(M_PI / 180), c = std::cos(radians), s = std::sin(radians);
    const double x = center ? center[2 * i] : 0, y = center ? center[2 * i + 1] : 0;
    out[0] = (T)c, out[1] = (T)-s, out[2] = (T)(x - (c * x - s * y));
    out[3] = (T)s, out[4] = (T)c, out[5] = (T)(y - (s * x + c * y));
    if (!std::isfinite(out[2] + out[5] + c)) return false;
  }
  return true;
}

// Rotations in the plane by `angle` (n) degrees around `center` (n, 2), or around the origin if null: (n, 2, 3),
// doubles if `wide`, else floats. Returns 0 if one is not finite.
EXPORT int32_t rotation_transforms(const float *angle, const float *center, int64_t n, int32_t wide, void *out) {
  return wide ? rotate(angle, center, n, (double *)out) : rotate(angle, center, n, (float *)out);
}
EXPORT_SHORT(rotation_transforms)
