// SPDX-License-Identifier: Apache-2.0
// Copies a window that is not fused with other operators, with a constant border, row by row in aligned blocks of 16
// bytes.
#pragma once
#include "core/gpu_runs.h"
#include "core/gpu_segments.h"
#include "geometry/truncated.h"
#include "geometry/window.h"

// A sample as rows: a row is the last axis that is cut or padded, with the whole axes after it.
template <class T, int DIMS>
struct WindowRows {
  // Per axis: the first index in the stored input, strides and sizes of the input, and sizes of the output. Samples
  // have less than 2^30 elements: windows that begin farther away are outside altogether.
  int32_t start[DIMS], step[DIMS], out[DIMS], in[DIMS];
  int32_t row, lo, hi;  // elements of a row of the output; the input has [lo, hi)
  int axis;             // of a row
  const T *data;

  DEVICE WindowRows(const WindowArgs &a, const Tensor &to, const Tensor &from) {
    data = from.as<T>();
    constexpr int64_t kFar = 1 << 30;
    int32_t n = 1;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
      const int64_t first = a.start[d] - a.origin[d];
      out[d] = (int32_t)to.shape[d], in[d] = (int32_t)from.shape[d];
      start[d] = (int32_t)(first < -kFar ? -kFar : first > kFar ? kFar : first), step[d] = n;
      n *= in[d];
    }
    axis = 0;
    bool is_whole = true;
    int32_t unit = 1;
    row = 1;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
      if (!is_whole) continue;
      unit = row;
      row *= out[d];
      is_whole = start[d] == 0 && out[d] == in[d];
      axis = d;
    }
    lo = hi = 0;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
      if (d != axis) continue;
      const int32_t first = start[d] < 0 ? -start[d] : 0, rest = in[d] - start[d], last = rest < out[d] ? rest : out[d];
      lo = (first < out[d] ? first : out[d]) * unit, hi = (last > 0 ? last : 0) * unit;
      data += (int64_t)start[d] * step[d];
    }
  }
  // Address in the input of column 0 of row r. The input has the columns [from, to).
  DEVICE const T *find(int32_t r, int32_t &from, int32_t &to) const {
    const T *p = data;
    bool inside = lo < hi;
#pragma unroll
    for (int d = DIMS - 2; d >= 0; d--) {
      if (d >= axis) continue;
      const int32_t above = d == 0 ? 0 : (int32_t)((uint32_t)r / (uint32_t)out[d]);
      const int32_t i = r - above * out[d] + start[d];
      inside = inside && (uint32_t)i < (uint32_t)in[d];
      p += (int64_t)i * step[d];
      r = above;
    }
    from = inside ? lo : 0, to = inside ? hi : 0;
    return p;
  }
};

// The fill value of a column outside of the input.
template <class T, int FILLS>
DEVICE T filling(const T (&fill)[FILLS], int32_t column) {
  const uint32_t which = (uint32_t)column % FILLS;
  T x = fill[0];
#pragma unroll
  for (int i = 1; i < FILLS; i++) x = which == i ? fill[i] : x;
  return x;
}

// G neighbouring threads copy PIECE blocks of a row, aligned in the output. A thread reads U blocks before it writes
// them. Outside of the input, the FILLS values of `fill` alternate. Blocks across the ends of a row or the input's
// border are written element by element, by the threads with the row's first piece.
template <class T, int DIMS, int FILLS, int G, int THREADS, int U, int PIECE>
DEVICE void copy_window(const Launch &l) {
  constexpr int E = 16 / sizeof(T), kTogether = THREADS / G, kEdges = (4 * E + G - 1) / G;
  const int lane = threadIdx.x % G;
  FOR_SAMPLES(sample, l) {
    const WindowArgs a = ((const WindowArgs *)l.args[0])[sample];
    const Tensor to = l.tensors[0][sample];
    const int32_t n = (int32_t)volume_of(to);
    if (n == 0) continue;
    const WindowRows<T, DIMS> rows(a, to, l.tensors[1][sample]);
    const int32_t row = rows.row, pieces = ((row + 2 * (E - 1)) / E + PIECE - 1) / PIECE;
    const int32_t n_items = n / row * pieces;
    T outside[FILLS];
#pragma unroll
    for (int i = 0; i < FILLS; i++) outside[i] = truncated<T>(load(a.fill + i));
    for (int32_t item = blockIdx.x * kTogether + threadIdx.x / G; item < n_items; item += gridDim.x * kTogether) {
      const int32_t r = pieces == 1 ? item : item / pieces, piece = item - r * pieces;
      int32_t from, to_column;
      const T *const p = rows.find(r, from, to_column);
      T *const line = to.template as<T>() + (int64_t)r * row;
      const int32_t lead = (int32_t)((unsigned long long)line / sizeof(T) & (E - 1));  // elements before the row
      const int32_t n_blocks = (row + lead + E - 1) / E;

      const auto has = [&](int32_t column) { return column >= from && column + E <= to_column; };
      const auto fills = [&](int32_t column) {
        return column >= 0 && column + E <= row && (column + E <= from || column >= to_column);
      };
      T edge[kEdges];
      int32_t place[kEdges];  // its column; -1: none
#pragma unroll
      for (int m = 0; m < kEdges; m++) {
        const int i = lane + m * G, q = i / E;
        const int32_t first = (from + lead) / E, last = (to_column + lead) / E;
        const int32_t block = q == 0 ? 0 : q == 1 ? first : q == 2 ? last : n_blocks - 1;
        const int32_t before = q == 0 ? -1 : q == 1 ? 0 : q == 2 ? first : last;
        const int32_t begin = block * E - lead, column = begin + i % E;
        const bool is_mixed = piece == 0 && q < 4 && block != before && !has(begin) && !fills(begin);
        place[m] = is_mixed && (uint32_t)column < (uint32_t)row ? column : -1;
        if (place[m] >= from && place[m] < to_column) edge[m] = load(p + column);
      }

      const void *const source = p - lead;
      const int ahead = (int)((unsigned long long)source & 15);
      const int32_t end = n_blocks < (piece + 1) * PIECE ? n_blocks : (piece + 1) * PIECE;
      for (int32_t j = piece * PIECE + lane; j < end; j += U * G) {
        Unaligned x[U];
#pragma unroll
        for (int k = 0; k < U; k++) {
          const int32_t block = j + k * G, column = block * E - lead;
          if (block < end && has(column)) x[k].read(source, block, ahead);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
          const int32_t block = j + k * G, column = block * E - lead;
          if (block >= end) continue;
          uint4 *const out = (uint4 *)(line - lead) + block;
          if (has(column)) {
            *out = x[k].get(ahead);
          } else if (fills(column)) {
            T y[E] __attribute__((aligned(16))), turned[FILLS];
#pragma unroll
            for (int e = 0; e < FILLS; e++) turned[e] = filling(outside, column + e);
#pragma unroll
            for (int e = 0; e < E; e++) y[e] = turned[e % FILLS];
            *out = *(const uint4 *)y;
          }
        }
      }
#pragma unroll
      for (int m = 0; m < kEdges; m++)
        if (place[m] >= 0)
          line[place[m]] = place[m] >= from && place[m] < to_column ? edge[m] : filling(outside, place[m]);
    }
  }
}
