// SPDX-License-Identifier: Apache-2.0
// Arguments of colour operators for a whole batch: columns in, columns out.
#include <cmath>

#include "core/program.h"

namespace {

void multiply(const double *x, const double *y, double *out) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) out[3 * i + j] = x[3 * i] * y[j] + x[3 * i + 1] * y[3 + j] + x[3 * i + 2] * y[6 + j];
}

}  // namespace

// Matrices (n, 9) on RGB that rotate the hue (degrees), multiply the saturation, and then multiply all channels by
// `value` and `contrast`. Columns (n); a null column has no effect. `to_yiq`, `to_rgb`: 3 x 3.
EXPORT void color_matrices(int64_t n, const float *hue, const float *saturation, const float *value,
                           const float *contrast, const double *to_yiq, const double *to_rgb, float *out) {
  for (int64_t i = 0; i < n; i++) {
    const double angle = hue ? hue[i] * (M_PI / 180) : 0, chroma = saturation ? saturation[i] : 1;
    const double scale = (value ? (double)value[i] : 1) * (contrast ? contrast[i] : 1);
    const double cos = chroma * std::cos(angle) * scale, sin = chroma * std::sin(angle) * scale;
    const double turned[] = {scale, 0, 0, 0, cos, sin, 0, -sin, cos};
    double half[9], whole[9];
    multiply(to_rgb, turned, half);
    multiply(half, to_yiq, whole);
    for (int k = 0; k < 9; k++) out[9 * i + k] = (float)whole[k];
  }
}
EXPORT_SHORT(color_matrices)
EXPORT_INSTRUCTION(color_matrices)

// Offsets (n, 3) such that `contrast` stretches values around `center` / 2, before they are multiplied by `value`.
EXPORT void color_offsets(int64_t n, const float *value, const float *contrast, int32_t center, float *out) {
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) out[3 * i + k] = value[i] * (1.0f - contrast[i]) * (0.5f * (float)center);
}
EXPORT_SHORT(color_offsets)
EXPORT_INSTRUCTION(color_offsets)
