// SPDX-License-Identifier: Apache-2.0
// form: own
#include "color/grid_mask.h"
#include "core/gpu_paint.h"

template <class T, int C, int N>
struct GridMaskPainter {
  typedef GridMaskArgs Args;
  Args a;
  int32_t extent[N];

  DEVICE void begin(const Args &args, const Tensor &sample) {
    a = args;
#pragma unroll
    for (int d = 0; d < N; d++) extent[d] = (int32_t)sample.shape[d];
  }
  template <int V>
  DEVICE void paint(T (&x)[V], int32_t row, int32_t column, int begin, int end) const {
    int32_t at[N], y = 0, fixed = 0;
    place_of_row(at, row, extent);
#pragma unroll
    for (int d = 0; d < N; d++) {
      if (d == a.y_axis) y = at[d] + (int32_t)a.first_y;
      if (d == a.x_axis) fixed = at[d] + (int32_t)a.first_x;
    }
    const bool across = a.x_axis == N - 1;
    const float y_cosine = (float)y * a.cosine, y_sine = (float)y * a.sine;
#pragma unroll
    for (int p = 0; p < V / C; p++) {
      const bool is_kept = grid_keeps((float)(across ? fixed + column + p - begin : fixed), y_cosine, y_sine, a);
      if (is_kept || p < begin || p >= end) continue;
#pragma unroll
      for (int c = 0; c < C; c++) x[p * C + c] = T(0);
    }
  }
};
