// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_paint.h"
#include "geometry/erase.h"
#include "geometry/truncated.h"

template <class T, int C, int N>
struct ErasePainter {
  typedef EraseArgs Args;
  static constexpr int kRows = 1;
  Args a;
  int32_t extent[N];
  int32_t ndim;

  DEVICE void begin(const Args &args, const Tensor &sample) {
    a = args, ndim = sample.ndim;
#pragma unroll
    for (int d = 0; d < N; d++) extent[d] = d < ndim ? (int32_t)sample.shape[d] : 1;
  }
  // An edge of a region relative to `zero`, clamped to [lo, hi].
  DEVICE static int border(const int64_t *p, int32_t zero, int lo, int hi) {
    const int64_t i = load(p) - zero;
    return i < lo ? lo : i > hi ? hi : (int)i;
  }
  template <int V>
  DEVICE void paint(T (&x)[V], int32_t row, int32_t column, int begin, int end) const {
    int32_t at[N];
    place_of_row(at, row, extent);
#pragma unroll 1
    for (int r = 0; r < a.regions; r++) {
      const int64_t *first = a.begin + r * ndim, *behind = a.end + r * ndim;
      bool inside = true;
#pragma unroll
      for (int d = 0; d < N - 1; d++) inside = inside && at[d] >= load(first + d) && at[d] < load(behind + d);
      if (!inside) continue;
      const int from = border(first + N - 1, column - begin, begin, end);
      const int to = border(behind + N - 1, column - begin, begin, end);
      if (from >= to) continue;
      const int lowest = C > 1 ? border(first + N, 0, 0, C) : 0, highest = C > 1 ? border(behind + N, 0, 0, C) : 1;
      const bool along = C == 1 && a.channels == N - 1;  // channels lie along the row
      const int32_t channel = a.channels < 0 || C > 1 || along ? 0 : at[a.channels < N ? a.channels : 0];
      T fill[C];
#pragma unroll
      for (int c = 0; c < C; c++) fill[c] = truncated<T>(load(a.fill + (a.channels >= 0 && C > 1 ? c : channel)));
#pragma unroll
      for (int p = 0; p < V / C; p++) {
        if (p < from || p >= to) continue;
        if (along) fill[0] = truncated<T>(load(a.fill + column + p - begin));
#pragma unroll
        for (int c = 0; c < C; c++)
          if (c >= lowest && c < highest) x[p * C + c] = fill[c];
      }
    }
  }
};
