// SPDX-License-Identifier: Apache-2.0
// Copies samples 16 bytes and more at a time, while painting over parts of their rows.
#pragma once
#include "core/gpu_rows.h"

// C contiguous elements are a place; N coordinates count places, the last one along a row. Threads take runs of places
// that begin at multiples of 16 bytes, independent of rows. A Painter has begin(args, sample) and paint(x, row, column,
// begin, end): places [begin, end) of the run x are those from `column` on of a row, and of the next row if kRows is 2
// instead of 1.
// U runs are read before the first is painted.
template <class T, int C, int N, int THREADS, int U, class Painter>
DEVICE void paint_rows(const Launch &l) {
  constexpr int kElements = 16 / sizeof(T), kShared = C % 2 ? 1 : C < kElements ? C : kElements;
  constexpr int P = kElements / kShared;
  FOR_SAMPLES(sample, l) {
    const Tensor to = l.tensors[0][sample];
    const T *in = l.tensors[1][sample].template as<T>();
    T *out = to.template as<T>();
    const int32_t n = (int32_t)(volume_of(to) / C);
    if (n == 0) continue;
    const int32_t width = N - 1 < to.ndim ? (int32_t)to.shape[N - 1] : 1;
    const int32_t ahead = (P - lead_of_row<T, C, P>(out)) % P, n_runs = (n + ahead + P - 1) / P;
    const int32_t begin_run = blockIdx.x * (THREADS * U) + threadIdx.x;
    if (begin_run >= n_runs) continue;
    Painter painter;
    painter.begin(((const typename Painter::Args *)l.args[0])[sample], to);
    for (int32_t i = begin_run; i < n_runs; i += gridDim.x * (THREADS * U)) {
      T x[U][P * C] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int32_t first = (i + k * THREADS) * P - ahead;
        if (first >= n) continue;
        load_run(x[k], in + (int64_t)first * C, (first < 0 ? -first : 0) * C, (n - first < P ? n - first : P) * C);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int32_t first = (i + k * THREADS) * P - ahead;
        if (first >= n) continue;
        const int begin = first < 0 ? -first : 0, end = n - first < P ? n - first : P;
        int32_t row = (uint32_t)(first + begin) / (uint32_t)width, column = first + begin - row * width;
#pragma unroll 1
        for (int at = begin, behind; at < end; at = behind, column = 0, row += Painter::kRows) {
          const int rest = Painter::kRows * width - column;
          behind = at + (rest < end - at ? rest : end - at);
          painter.paint(x[k], row, column, at, behind);
        }
        store_run(out + (int64_t)first * C, x[k], begin * C, end * C);
      }
    }
  }
}
