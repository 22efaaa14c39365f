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
  // A run may continue in the next row.
  static constexpr int kRows = 2;
  template <int V>
  DEVICE void paint(T (&x)[V], int32_t row, int32_t column, int begin, int end) const {
    const bool across = a.x_axis == N - 1;
    int32_t fixed[2];
    float y_cosine[2], y_sine[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int32_t at[N], y = 0;
      place_of_row(at, row + r, extent);
      fixed[r] = 0;
#pragma unroll
      for (int d = 0; d < N; d++) {
        if (d == a.y_axis) y = at[d] + (int32_t)a.first_y;
        if (d == a.x_axis) fixed[r] = at[d] + (int32_t)a.first_x;
      }
      y_cosine[r] = (float)y * a.cosine, y_sine[r] = (float)y * a.sine;
    }
    if (across) fixed[0] = (int32_t)a.first_x + column - begin, fixed[1] = fixed[0] - extent[N - 1];
    const int behind = begin + extent[N - 1] - column;  // index in the run where the next row begins
#pragma unroll
    for (int p = 0; p < V / C; p++) {
      const bool next = p >= behind;
      const int32_t at = (next ? fixed[1] : fixed[0]) + (across ? p : 0);
      const bool is_kept = grid_keeps((float)at, next ? y_cosine[1] : y_cosine[0], next ? y_sine[1] : y_sine[0], a);
      if (is_kept || p < begin || p >= end) continue;
#pragma unroll
      for (int c = 0; c < C; c++) x[p * C + c] = T(0);
    }
  }
};
