// SPDX-License-Identifier: Apache-2.0
// form: own
#include "filter/gpu_tile.h"
#include "filter/morphology.h"

// best[j] = the best of x(j) .. x(j + size - 1). SIZE: the size if known at compile time, else 0.
template <int SIZE, bool DILATES, int V, class T, class X>
DEVICE void pick_run(T (&best)[V], int any_size, const X &x) {
  const int size = SIZE > 0 ? SIZE : any_size;
  if (size >= V) {  // the elements that all windows share, then those before and behind them
    T common = x(V - 1);
#pragma unroll
    for (int i = V; i < size; i++) common = better<DILATES>(common, x(i));
    best[V - 1] = common;
#pragma unroll
    for (int j = V - 2; j >= 0; j--) best[j] = better<DILATES>(best[j + 1], x(j));
    T behind = x(size);
#pragma unroll
    for (int j = 1; j < V; j++) {
      best[j] = better<DILATES>(best[j], behind);
      if (j + 1 < V) behind = better<DILATES>(behind, x(size + j));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 2 * V - 2; i++) {
      if (i >= size + V - 1) break;
      const T value = x(i);
#pragma unroll
      for (int j = 0; j < V; j++)
        if (i >= j && i - j < size) best[j] = i == j ? value : better<DILATES>(best[j], value);
    }
  }
}

DEVICE MorphologyArgs morphology_args(const Launch &l, int sample) {
  return ((const MorphologyArgs *)l.args[0])[sample];
}

// The images of a sample between iterations: part WHERE (0 or 1) of the scratch memory, `volume` elements each. If
// WHERE is -1: `outside`.
template <class T, int WHERE>
DEVICE T *morphology_memory(const Launch &l, const Tensor &outside, int sample, int64_t volume) {
  return WHERE < 0 ? outside.as<T>() : (T *)l.scratch + (2 * (int64_t)sample + WHERE) * volume;
}

// An iteration by tiles of ROWS rows of ELEMENTS elements, along W and then along H. C, SH, SW: the channels and
// rectangle sizes if all samples agree, else 0.
template <class T, bool DILATES, int C, int SH, int SW, int ROWS, int ELEMENTS, int FROM, int TO>
DEVICE void morphology_tiles(const Launch &l, int64_t volume) {
  constexpr int kThreads = 256, kAcross = SW > 0 ? 8 : 4, kDown = SH > 0 ? 8 : 4, kPitch = odd_pitch<T>(ELEMENTS);
  DYNAMIC_SHARED(T, whole);
  FOR_SAMPLES(sample, l) {
    const Tensor &x = l.tensors[1][sample];
    const MorphologyArgs a = morphology_args(l, sample);
    const Grid g = grid_of(x, a.n_outer, 2);
    if (g.outer * g.image() == 0) continue;
    const TilesOf<C> tiles(g, ROWS, ELEMENTS);
    const T *in = morphology_memory<T, FROM>(l, x, sample, volume);
    T *out = morphology_memory<T, TO>(l, l.tensors[0][sample], sample, volume);
    const int height = SH > 0 ? SH : a.size[0], width = SW > 0 ? SW : a.size[1];
    constexpr int kC = C ? C : 1, kColumns = (ELEMENTS / kC + kAcross - 1) / kAcross * kAcross;
    const int pitch =
        C && SW ? odd_pitch<T>((kColumns + SW - 1) * kC)
                : odd_pitch<T>(((tiles.columns + kAcross - 1) / kAcross * kAcross + width - 1) * tiles.channels);
    T *across = whole + (ROWS + height - 1) * pitch;
    for (int64_t i = blockIdx.x; i < tiles.n; i += gridDim.x) {
      const Tile tile(tiles, g, ROWS, i);
      const int c = C ? C : tile.channels, n = tile.columns * c, rows = tile.rows + height - 1;
      __syncthreads();
      load_rectangle(whole, pitch, in + tile.slice * g.slice(), g, tile.y - a.anchor[0], tile.x - a.anchor[1], rows,
                     tile.columns + width - 1, tile.channel, c, a.border, worst<T>(DILATES));
      __syncthreads();
      const uint32_t items = rows * c * ((tile.columns + kAcross - 1) / kAcross);
      for (uint32_t item = threadIdx.x; item < items; item += kThreads) {
        const uint32_t group = item / (uint32_t)rows, r = item - group * rows;
        const int run = (int)(group / (uint32_t)c), column = run * kAcross * c + (int)group - run * c;
        const T *from = whole + r * pitch + column;
        T best[kAcross];
        pick_run<SW, DILATES>(best, width, [&](int k) { return from[k * c]; });
        T *to = across + r * kPitch + column;
#pragma unroll
        for (int j = 0; j < kAcross; j++)
          if (column + j * c < n) to[j * c] = best[j];
      }
      __syncthreads();
      T *to = out + tile.slice * g.slice();
      for (int item = threadIdx.x; item < ROWS / kDown * ELEMENTS; item += kThreads) {
        const int column = item % ELEMENTS, row = item / ELEMENTS * kDown;
        if (column >= n || row >= tile.rows) continue;
        // Rows below the last one are read, but only for outputs that are not written.
        const T *from = across + row * kPitch + column;
        T best[kDown];
        pick_run<SH, DILATES>(best, height, [&](int k) { return from[k * kPitch]; });
        T *at = to + (tile.y + row) * g.row() + place_in_row(tile, g, column);
#pragma unroll
        for (int j = 0; j < kDown; j++)
          if (row + j < tile.rows) at[j * g.row()] = best[j];
      }
    }
  }
}

// A pass along AXIS (0: H, 1: W) for large rectangles.
template <class T, bool DILATES, int AXIS, int FROM, int TO>
DEVICE void morphology_pass(const Launch &l, int64_t volume) {
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    if (x.volume() == 0) continue;
    const MorphologyArgs a = morphology_args(l, sample);
    const Grid g(x, a.n_outer, 2);
    const T *in = morphology_memory<T, FROM>(l, x, sample, volume);
    T *out = morphology_memory<T, TO>(l, l.tensors[0][sample], sample, volume);
    const int64_t step = AXIS == 0 ? g.row() : g.c, extent = AXIS == 0 ? g.h : g.w, n = g.outer * g.slice();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t at = i / step % extent;
      const T *line = in + i - at * step;
      T best = worst<T>(DILATES);
      for (int k = 0; k < a.size[AXIS]; k++) {
        const int64_t place = border_place(at + k - a.anchor[AXIS], extent, a.border);
        if (place >= 0) best = better<DILATES>(best, load(line + place * step));
      }
      out[i] = best;
    }
  }
}
