// SPDX-License-Identifier: Apache-2.0
// form: own
#include "filter/correlate.h"
#include "filter/gpu_small_filter.h"
#include "filter/gpu_tile.h"

// A sample: its images, filter and outputs.
template <class Out, class In, bool HAS_FILL>
struct Correlation {
  const CorrelateArgs &a;
  Grid from, to;
  const In *in;
  Out *out;
  const float *filter;
  float fill;
  int d, h, w;  // of the filter
  bool empty;
  DEVICE Correlation(const Launch &l, int sample)
      : a(((const CorrelateArgs *)l.args[0])[sample]),
        from(grid_of(l.tensors[1][sample], a.n_outer, a.n_space)),
        to(grid_of(l.tensors[0][sample], a.n_outer, a.n_space)) {
    in = l.tensors[1][sample].template as<In>();
    out = l.tensors[0][sample].template as<Out>();
    empty = to.outer * to.image() == 0;
    const Tensor &f = l.tensors[2][sample];
    filter = f.template as<float>();
    d = f.ndim > 2 ? (int)f.shape[0] : 1, h = (int)f.shape[f.ndim - 2], w = (int)f.shape[f.ndim - 1];
    fill = 0;
    if constexpr (HAS_FILL) fill = (float)load(l.tensors[3][sample].template as<In>());
  }
  // The input slice under slice k of the filter for output slice i; null if outside.
  DEVICE const In *slice(int64_t i, int k) const {
    const int64_t image = i / to.d, z = i - image * to.d;
    const int64_t under = border_place(z - a.anchor[0] + k, from.d, a.border);
    return under < 0 ? nullptr : in + image * from.image() + under * from.slice();
  }
};

// Tiles of ROWS rows of ELEMENTS elements. C: the number of channels, if small and the same for all samples, else 0.
// FH, FW: the filter size, likewise. WEIGHTS: size of the largest filter. ONE: the filter has one slice, so sums are
// not kept from slice to slice.
template <class Out, class In, bool HAS_FILL, bool ONE, int C, int FH, int FW, int ROWS, int ELEMENTS, int WEIGHTS>
DEVICE void correlate_tiles(const Launch &l) {
  constexpr int kThreads = 256, kDown = FH > 0 ? 8 : 4, kHeld = (ROWS / kDown * ELEMENTS + kThreads - 1) / kThreads;
  constexpr int kWeights = FH > 0 ? FH * FW : 1;
  DYNAMIC_SHARED(float, weights);
  float *whole = weights + WEIGHTS;
  FOR_SAMPLES(sample, l) {
    const Correlation<Out, In, HAS_FILL> s(l, sample);
    if (s.empty) continue;
    const TilesOf<C> tiles(s.to, ROWS, ELEMENTS);
    if (blockIdx.x >= tiles.n) continue;
    __syncthreads();
    for (int i = threadIdx.x; i < s.d * s.h * s.w; i += kThreads) weights[i] = load(s.filter + i);
    const int pitch = C && FW ? odd_pitch<float>((ELEMENTS / (C ? C : 1) + FW - 1) * C)
                              : odd_pitch<float>((tiles.columns + s.w - 1) * tiles.channels);
    const int64_t step = s.to.row();
    for (int64_t i = blockIdx.x; i < tiles.n; i += gridDim.x) {
      const Tile tile(tiles, s.to, ROWS, i);
      const int c = C ? C : tile.channels, n = tile.columns * c;
      const int rows = tile.rows + s.h - 1, columns = tile.columns + s.w - 1;
      Out *to = s.out + tile.slice * s.to.slice() + tile.y * step;
      auto write = [&](int held, const float(&sum)[kDown]) {
        const int item = threadIdx.x + held * kThreads, column = item % ELEMENTS, row = item / ELEMENTS * kDown;
        if (column >= n) return;
        Out *at = to + row * step + place_in_row(tile, s.to, column);
#pragma unroll
        for (int v = 0; v < kDown; v++, at += step)
          if (row + v < tile.rows) *at = saturate<Out>(sum[v]);
      };
      float sums[ONE ? 1 : kHeld][kDown] = {};
      for (int k = 0; k < s.d; k++) {
        __syncthreads();
        if (const In *slice = s.slice(tile.slice, k))
          load_rectangle(whole, pitch, slice, s.from, tile.y - s.a.anchor[1], tile.x - s.a.anchor[2], rows, columns,
                         tile.channel, c, s.a.border, s.fill);
        else
          for (int j = threadIdx.x; j < rows * pitch; j += kThreads) whole[j] = s.fill;
        __syncthreads();
        const float *weight = weights + k * s.h * s.w;
        float w[kWeights];
#pragma unroll
        for (int j = 0; j < kWeights; j++) w[j] = weight[j];
        auto add = [&](int held, float(&sum)[kDown]) {
          const int item = threadIdx.x + held * kThreads, column = item % ELEMENTS, row = item / ELEMENTS * kDown;
          if (column >= n || row >= tile.rows) return;
          // Sums in the CPU's order. Rows below the tile are read, but only for outputs that are not written.
          const float *x = whole + row * pitch + column;
          if constexpr (FH > 0) {
#pragma unroll
            for (int r = 0; r < FH + kDown - 1; r++)
#pragma unroll
              for (int j = 0; j < FW; j++) {
                const float value = x[r * pitch + j * c];
#pragma unroll
                for (int v = 0; v < kDown; v++)
                  if (r >= v && r - v < FH) sum[v] += w[(r - v) * FW + j] * value;
              }
          } else {
            for (int r = 0; r < s.h + kDown - 1; r++)
              for (int j = 0; j < s.w; j++) {
                const float value = x[r * pitch + j * c];
#pragma unroll
                for (int v = 0; v < kDown; v++)
                  if (r >= v && r - v < s.h) sum[v] += weight[(r - v) * s.w + j] * value;
              }
          }
        };
        if constexpr (ONE) {
#pragma unroll 1
          for (int held = 0; held < kHeld; held++) {
            float sum[kDown] = {};
            add(held, sum);
            write(held, sum);
          }
        } else {
#pragma unroll
          for (int held = 0; held < kHeld; held++) add(held, sums[held]);
        }
      }
      if constexpr (!ONE) {
#pragma unroll
        for (int held = 0; held < kHeld; held++) write(held, sums[held]);
      }
    }
  }
}

// For filters that are too large for tiles.
template <class Out, class In, bool HAS_FILL>
DEVICE void correlate_places(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Correlation<Out, In, HAS_FILL> s(l, sample);
    if (s.empty) continue;
    const int64_t n = s.to.outer * s.to.image(), c = s.to.c;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t slice = i / s.to.slice(), rest = i - slice * s.to.slice(), y = rest / s.to.row();
      const int64_t x = (rest - y * s.to.row()) / c, channel = rest - y * s.to.row() - x * c;
      const float *weight = s.filter;
      float sum = 0;
      for (int k = 0; k < s.d; k++) {
        const In *in = s.slice(slice, k);
        for (int p = 0; p < s.h; p++) {
          const int64_t row = border_place(y - s.a.anchor[1] + p, s.from.h, s.a.border);
          for (int q = 0; q < s.w; q++) {
            const int64_t column = border_place(x - s.a.anchor[2] + q, s.from.w, s.a.border);
            const bool outside = !in || row < 0 || column < 0;
            sum += *weight++ * (outside ? s.fill : (float)load(in + row * s.from.row() + column * c + channel));
          }
        }
      }
      s.out[i] = saturate<Out>(sum);
    }
  }
}
