// SPDX-License-Identifier: Apache-2.0
// Small dense filters of one size. A thread computes a block of outputs; it reads the inputs for them once, four
// elements at a time.
#pragma once
#include "core/gpu_runs.h"
#include "filter/gpu_tile.h"

// A tile of C channels with the surroundings for filters of FH x FW, as floats in shared memory.
template <int C, int FH, int FW>
struct SmallTile {
  static constexpr int kThreads = 256, kRows = 32, kElements = 256;
  static constexpr int kDown = 4, kAcross = 4;                     // outputs per thread at a time: rows, elements
  static constexpr int kQuads = (kAcross + (FW - 1) * C + 3) / 4;  // groups of 4 elements under a row of outputs
  static constexpr int kPitch = kElements - kAcross + 4 * kQuads;
  static constexpr int kHeld = kRows / kDown * (kElements / kAcross) / kThreads;

  // Four elements of a row of the image from element `e` on, which may be outside.
  template <class In>
  DEVICE static void quad(float (&to)[4], const UnalignedRun<In, 4> &run, const In *line, int e, int w, bool is_inside,
                          int border, float fill) {
    if (is_inside) {
      UnalignedRun<In, 4> found = run;
      In x[4];
      found.get(x, line + e);
#pragma unroll
      for (int i = 0; i < 4; i++) to[i] = to_float(x[i]);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int at = e + i, p = at < 0 ? -((C - 1 - at) / C) : at / C, place = border_place_of<int32_t>(p, w, border);
      to[i] = place < 0 ? fill : to_float(load(line + place * C + (at - p * C)));
    }
  }
  // Loads `rows` rows of `n` elements from row `y` and pixel `x` on. A warp takes two rows at a time.
  template <class In>
  DEVICE static void load_tile(float *whole, const In *slice, const Grid &g, int y, int x, int rows, int n, int border,
                               float fill) {
    constexpr int kWarps = kThreads / 32, kEach = (kPitch / 4 + 31) / 32;
    const int lane = threadIdx.x % 32, h = (int)g.h, w = (int)g.w, width = w * C;
    for (int r = threadIdx.x / 32; r < rows; r += 2 * kWarps) {
      UnalignedRun<In, 4> found[2][kEach];
      int row[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        row[i] = border_place_of<int32_t>(y + (r + i * kWarps < rows ? r + i * kWarps : r), h, border);
        const In *line = slice + (int64_t)(row[i] < 0 ? 0 : row[i]) * width;
#pragma unroll
        for (int k = 0; k < kEach; k++) {
          const int e = x * C + 4 * (lane + 32 * k);
          if (4 * (lane + 32 * k) < n && e >= 0 && e + 4 <= width) found[i][k].read(line + e, 0, 4);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (r + i * kWarps >= rows) break;
        const In *line = slice + (int64_t)(row[i] < 0 ? 0 : row[i]) * width;
#pragma unroll
        for (int k = 0; k < kEach; k++) {
          const int at = 4 * (lane + 32 * k), e = x * C + at;
          if (at >= n) continue;
          float v[4] __attribute__((aligned(16))) = {fill, fill, fill, fill};
          if (row[i] >= 0) quad(v, found[i][k], line, e, w, e >= 0 && e + 4 <= width, border, fill);
          *(uint4 *)(whole + (r + i * kWarps) * kPitch + at) = *(const uint4 *)v;
        }
      }
    }
  }
  // Adds up a block of outputs, in the CPU's order. `x`: begin of the first output's window.
  DEVICE static void add(float (&sum)[kDown][kAcross], const float *x, const float (&w)[FH * FW]) {
#pragma unroll
    for (int r = 0; r < FH + kDown - 1; r++) {
      float v[4 * kQuads] __attribute__((aligned(16)));
#pragma unroll
      for (int q = 0; q < kQuads; q++) ((uint4 *)v)[q] = ((const uint4 *)(x + r * kPitch))[q];
#pragma unroll
      for (int j = 0; j < FW; j++)
#pragma unroll
        for (int d = 0; d < kDown; d++)
#pragma unroll
          for (int a = 0; a < kAcross; a++)
            if (r >= d && r - d < FH) sum[d][a] += w[(r - d) * FW + j] * v[j * C + a];
    }
  }
};

// `S`: a Correlation.
template <class S, class Out, class In, int C, int FH, int FW>
DEVICE void correlate_small(const Launch &l) {
  typedef SmallTile<C, FH, FW> T;
  DYNAMIC_SHARED(float, whole);
  FOR_SAMPLES(sample, l) {
    const S s(l, sample);
    if (s.empty) continue;
    const TilesOf<C> tiles(s.to, T::kRows, T::kElements);
    if (blockIdx.x >= tiles.n) continue;
    float w[FH * FW];
#pragma unroll
    for (int j = 0; j < FH * FW; j++) w[j] = load(s.filter + j);
    const int64_t step = s.to.row();
    for (int64_t i = blockIdx.x; i < tiles.n; i += gridDim.x) {
      const Tile tile(tiles, s.to, T::kRows, i);
      const int n = tile.columns * C;
      __syncthreads();
      T::load_tile(whole, s.slice(tile.slice, 0), s.from, tile.y - s.a.anchor[1], tile.x - s.a.anchor[2],
                   tile.rows + FH - 1, n + (FW - 1) * C, s.a.border, s.fill);
      __syncthreads();
      Out *to = s.out + tile.slice * s.to.slice() + tile.y * step + (int64_t)tile.x * C;
#pragma unroll 1
      for (int held = 0; held < T::kHeld; held++) {
        const int item = threadIdx.x + held * T::kThreads;
        const int e = item % (T::kElements / T::kAcross) * T::kAcross;
        const int row = item / (T::kElements / T::kAcross) * T::kDown;
        if (e >= n || row >= tile.rows) continue;
        float sum[T::kDown][T::kAcross] = {};
        T::add(sum, whole + row * T::kPitch + e, w);
#pragma unroll
        for (int d = 0; d < T::kDown; d++) {
          if (row + d >= tile.rows) break;
          Out x[T::kAcross] __attribute__((aligned(16)));
#pragma unroll
          for (int a = 0; a < T::kAcross; a++) x[a] = saturate<Out>(sum[d][a]);
          store_run(to + (row + d) * step + e, x, 0, n - e < T::kAcross ? n - e : T::kAcross);
        }
      }
    }
  }
}
