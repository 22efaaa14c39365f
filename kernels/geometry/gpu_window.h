// SPDX-License-Identifier: Apache-2.0
// A window alone, with its constant outside of the input, is copied by 16 bytes of the output, whatever its rows are.
#pragma once
#include "core/gpu_runs.h"
#include "geometry/truncated.h"
#include "geometry/window.h"

// A sample as rows: the last axis that is cut or padded, and those behind it, which are whole.
template <class T, int DIMS>
struct WindowRows {
  int64_t start[DIMS], step[DIMS];  // per axis: the first index in what there is of the input; elements of the input
  int32_t out[DIMS], in[DIMS];
  int32_t row, lo, hi;  // elements of a row of the output, and those of them that the input has
  int axis;             // the row's
  const T *data;

  DEVICE WindowRows(const WindowArgs &a, const Tensor &to, const Tensor &from) {
    data = from.as<T>();
    int64_t n = 1;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
      out[d] = (int32_t)to.shape[d], in[d] = (int32_t)from.shape[d];
      start[d] = a.start[d] - a.origin[d], step[d] = n;
      n *= in[d];
    }
    axis = 0;
    bool is_whole = true;
    row = 1;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
      if (!is_whole) continue;
      row *= out[d];
      is_whole = start[d] == 0 && out[d] == in[d];
      axis = d;
    }
    lo = hi = 0;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
      if (d != axis || out[d] == 0) continue;
      const int64_t unit = row / out[d], first = start[d] < 0 ? -start[d] : 0;
      const int64_t last = in[d] - start[d] < out[d] ? in[d] - start[d] : out[d];
      lo = (int32_t)((first < out[d] ? first : out[d]) * unit), hi = (int32_t)((last > 0 ? last : 0) * unit);
      data += start[d] * step[d];
    }
  }
  // Where column 0 of a row lies in the input; columns [from, to) are there.
  DEVICE const T *find(int32_t r, int32_t &from, int32_t &to) const {
    const T *p = data;
    bool inside = true;
#pragma unroll
    for (int d = DIMS - 2; d >= 0; d--) {
      if (d >= axis) continue;
      const int32_t above = d == 0 ? 0 : (int32_t)((uint32_t)r / (uint32_t)out[d]);
      const int64_t i = r - (int64_t)above * out[d] + start[d];
      inside = inside && i >= 0 && i < in[d];
      p += i * step[d];
      r = above;
    }
    from = inside ? lo : 0, to = inside ? hi : 0;
    return p;
  }
};

// Elements [begin, end) of x become those from column `column` on of a row, begin standing there.
template <class T, int E, int DIMS>
DEVICE void read_window(T (&x)[E], const WindowRows<T, DIMS> &rows, int32_t r, int32_t column, int begin, int end,
                        T outside) {
  int32_t from, to;
  const T *p = rows.find(r, from, to) + column - begin;
  from += begin - column, to += begin - column;
  const int lo = from < begin ? begin : from > end ? end : from, hi = to > end ? end : to < lo ? lo : to;
  if (begin == 0 && end == E) {
    if (lo < hi) load_run(x, p, lo, hi);
    if (lo == 0 && hi == E) return;
#pragma unroll
    for (int e = 0; e < E; e++)
      if (e < lo || e >= hi) x[e] = outside;
    return;
  }
  T y[E] __attribute__((aligned(16)));
  if (lo < hi) load_run(y, p, lo, hi);
#pragma unroll
  for (int e = 0; e < E; e++)
    if (e >= begin && e < end) x[e] = e >= lo && e < hi ? y[e] : outside;
}

// Run i of E elements that begin at a multiple of 16 bytes.
template <int E>
struct WindowRun {
  int32_t e, row, column;  // its first element, which may lie before the output, and where its first one inside lies
  int begin, end;
  template <class Rows>
  DEVICE WindowRun(int32_t i, int32_t lead, int32_t n, const Rows &rows) {
    e = i * E - lead;
    begin = e < 0 ? -e : 0, end = n - e < E ? n - e : E;
    row = (int32_t)((uint32_t)(e + begin) / (uint32_t)rows.row), column = e + begin - row * rows.row;
  }
  template <class Rows>
  DEVICE bool is_simple(const Rows &rows) const {
    return begin == 0 && end == E && column + E <= rows.row;
  }
};

// Threads take runs of the output; U of them are read before the first is written.
template <class T, int DIMS, int THREADS, int U>
DEVICE void copy_window(const Launch &l) {
  constexpr int E = 16 / sizeof(T);
  FOR_SAMPLES(sample, l) {
    const WindowArgs a = ((const WindowArgs *)l.args[0])[sample];
    const Tensor to = l.tensors[0][sample];
    const int32_t n = (int32_t)volume_of(to);
    T *out = to.template as<T>();
    const int32_t lead = (int32_t)((unsigned long long)out / sizeof(T) & (E - 1)), n_runs = (n + lead + E - 1) / E;
    int32_t first = blockIdx.x * (THREADS * U) + threadIdx.x;
    if (n == 0 || first >= n_runs) continue;
    const WindowRows<T, DIMS> rows(a, to, l.tensors[1][sample]);
    const T outside = truncated<T>(load(a.fill));
    for (; first < n_runs; first += gridDim.x * (THREADS * U)) {
      T x[U][E] __attribute__((aligned(16)));
      int others = 0;  // those of several rows, or cut
#pragma unroll
      for (int k = 0; k < U; k++) {
        if (first + k * THREADS >= n_runs) continue;
        const WindowRun<E> run(first + k * THREADS, lead, n, rows);
        if (run.is_simple(rows))
          read_window(x[k], rows, run.row, run.column, 0, E, outside);
        else
          others |= 1 << k;
      }
#pragma unroll
      for (int k = 0; k < U; k++)
        if (first + k * THREADS < n_runs && !(others >> k & 1))
          *(uint4 *)(out + (first + k * THREADS) * E - lead) = *(const uint4 *)x[k];
#pragma unroll 1
      for (int k = 0; others >> k; k++) {
        if (!(others >> k & 1)) continue;
        const WindowRun<E> run(first + k * THREADS, lead, n, rows);
        T y[E] __attribute__((aligned(16)));
        int32_t row = run.row, column = run.column;
#pragma unroll 1
        for (int begin = run.begin, end; begin < run.end; begin = end, column = 0, row++) {
          end = begin + (rows.row - column < run.end - begin ? rows.row - column : run.end - begin);
          read_window(y, rows, row, column, begin, end, outside);
        }
        store_run(out + run.e, y, run.begin, run.end);
      }
    }
  }
}
