// SPDX-License-Identifier: Apache-2.0
// form: own
#include "filter/gpu_tile.h"
#include "filter/separable.h"

// acc[j] += sum of weight[k] * x(j + k) for k < size, in the order of k, as on the CPU. SIZE: the size if known at
// compile time, else 0.
template <int SIZE, int V, class X>
DEVICE void slide(float (&acc)[V], const float *weight, int size, const X &x) {
  if constexpr (SIZE > 0) {
#pragma unroll
    for (int i = 0; i < SIZE + V - 1; i++) {
      const float value = x(i);
#pragma unroll
      for (int j = 0; j < V; j++)
        if (i - j >= 0 && i - j < SIZE) acc[j] += weight[i - j] * value;
    }
  } else {
    float w[V];  // the last V weights
    for (int begin = 0; begin < size + V - 1; begin += V) {
      const bool inner = begin >= V && begin + V <= size;
#pragma unroll
      for (int u = 0; u < V; u++) {
        const int i = begin + u;
        if (inner) {
          w[u] = weight[i];
          const float value = x(i);
#pragma unroll
          for (int j = 0; j < V; j++) acc[j] += w[(u - j + V) % V] * value;
        } else if (i < size + V - 1) {
          w[u] = i < size ? weight[i] : 0.0f;
          const float value = x(i);
#pragma unroll
          for (int j = 0; j < V; j++)
            if (i >= j && i - j < size) acc[j] += w[(u - j + V) % V] * value;
        }
      }
    }
  }
}

DEVICE SeparableArgs separable_args(const Launch &l, int sample) { return ((const SeparableArgs *)l.args[0])[sample]; }

// Tiles of images, along W and then along H. C, SH, SW: the channels and window sizes if all samples agree, else 0.
// ROWS, ELEMENTS: size of a tile. LONGEST: length of the longest window. ONE: there is one term, so sums are not kept
// from term to term.
template <class Out, class In, bool ONE, int C, int SH, int SW, int ROWS, int ELEMENTS, int LONGEST>
DEVICE void separable_tiles(const Launch &l) {
  constexpr int kThreads = 256, kAcross = SW > 0 ? 8 : 4, kDown = SH > 0 ? 8 : 4;
  constexpr int kColumn = ROWS / kDown, kHeld = (kColumn * ELEMENTS + kThreads - 1) / kThreads;
  constexpr int kPitch = ELEMENTS | 1;  // odd, so that the elements of a column lie in different banks
  DYNAMIC_SHARED(float, shared);
  float *weights = shared, *rest = shared + 3 * 2 * LONGEST;
  FOR_SAMPLES(sample, l) {
    const Tensor &x = l.tensors[1][sample];
    const SeparableArgs &a = ((const SeparableArgs *)l.args[0])[sample];
    const Grid g = grid_of(x, a.n_outer, a.n_space);
    if (g.outer * g.image() == 0) continue;
    const TilesOf<C> tiles(g, ROWS, ELEMENTS);
    if (blockIdx.x >= tiles.n) continue;
    int radius_y = 0, radius_x = 0;
    for (int t = 0; t < a.terms; t++) {
      radius_y = max(radius_y, a.size[3 * t + 1] / 2);
      radius_x = max(radius_x, a.size[3 * t + 2] / 2);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < a.terms * 2 * LONGEST; i += kThreads) {
      const int window = i / LONGEST, k = i % LONGEST, t = window / 2, axis = 1 + window % 2;
      if (k < a.size[3 * t + axis]) weights[i] = a.windows[(3 * t + axis) * a.stride + k];
    }
    constexpr int kC = C ? C : 1, kColumns = (ELEMENTS / kC + kAcross - 1) / kAcross * kAcross;
    const int pitch = ONE && C && SW
                          ? (kColumns + 2 * (SW / 2)) * kC | 1
                          : ((tiles.columns + kAcross - 1) / kAcross * kAcross + 2 * radius_x) * tiles.channels | 1;
    float *whole = rest, *across = rest + (ROWS + 2 * radius_y) * pitch;
    for (int64_t i = blockIdx.x; i < tiles.n; i += gridDim.x) {
      const Tile tile(tiles, g, ROWS, i);
      const int c = C ? C : tile.channels, n = tile.columns * c;
      __syncthreads();
      load_rectangle(whole, pitch, x.as<In>() + tile.slice * g.slice(), g, tile.y - radius_y, tile.x - radius_x,
                     tile.rows + 2 * radius_y, tile.columns + 2 * radius_x, tile.channel, c, REFLECT_101, 0.0f);
      Out *to = l.tensors[0][sample].as<Out>() + tile.slice * g.slice() + tile.y * g.row();
      auto write = [&](int h, const float(&sum)[kDown]) {
        const int item = threadIdx.x + h * kThreads, column = item % ELEMENTS, row = item / ELEMENTS * kDown;
        if (column >= n) return;
        Out *at = to + row * g.row() + place_in_row(tile, g, column);
#pragma unroll
        for (int j = 0; j < kDown; j++)
          if (row + j < tile.rows) at[j * g.row()] = saturate<Out>(sum[j]);
      };
      float sums[ONE ? 1 : kHeld][kDown] = {};
      for (int t = 0; t < a.terms; t++) {
        const int height = SH > 0 ? SH : a.size[3 * t + 1], width = SW > 0 ? SW : a.size[3 * t + 2];
        const float *w = weights + 2 * t * LONGEST, *first = whole + (radius_y - height / 2) * pitch;
        const int rows = tile.rows + height - 1;
        __syncthreads();
        // Neighbouring threads take different rows, as columns that are kAcross pixels apart would share banks.
        const uint32_t items = rows * c * ((tile.columns + kAcross - 1) / kAcross);
        for (uint32_t item = threadIdx.x; item < items; item += kThreads) {
          const uint32_t group = item / (uint32_t)rows, r = item - group * rows;
          const int run = (int)(group / (uint32_t)c), column = run * kAcross * c + (int)group - run * c;
          const float *from = first + r * pitch + (radius_x - width / 2) * c + column;
          float sum[kAcross] = {};
          slide<SW>(sum, w + LONGEST, width, [&](int k) { return from[k * c]; });
          float *to = across + r * kPitch + column;
#pragma unroll
          for (int j = 0; j < kAcross; j++)
            if (column + j * c < n) to[j * c] = sum[j];
        }
        __syncthreads();
        auto add = [&](int h, float(&sum)[kDown]) {
          const int item = threadIdx.x + h * kThreads, column = item % ELEMENTS, row = item / ELEMENTS * kDown;
          if (column >= n || row >= tile.rows) return;
          // Rows below the last one are read, but only for outputs that are not written.
          const float *from = across + row * kPitch + column;
          slide<SH>(sum, w, height, [&](int k) { return from[k * kPitch]; });
        };
        if constexpr (ONE) {
#pragma unroll 1
          for (int h = 0; h < kHeld; h++) {
            float sum[kDown] = {};
            add(h, sum);
            write(h, sum);
          }
        } else {
#pragma unroll
          for (int h = 0; h < kHeld; h++) add(h, sums[h]);
        }
      }
      if constexpr (!ONE) {
#pragma unroll
        for (int h = 0; h < kHeld; h++) write(h, sums[h]);
      }
    }
  }
}

// One pass along AXIS (0, 1, 2: D, H, W) for one term, for volumes or long windows. ADDS: adds to the sums in `before`.
template <int AXIS, bool ADDS, class Out, class In>
DEVICE void separable_line(Out *out, const float *before, const In *in, const Grid &g, const SeparableArgs &a,
                           int term) {
  constexpr int kRun = 4;
  const int64_t step = AXIS == 0 ? g.slice() : AXIS == 1 ? g.row() : g.c;
  const int extent = (int)(AXIS == 0 ? g.d : AXIS == 1 ? g.h : g.w), runs = (extent + kRun - 1) / kRun;
  const int size = a.size[3 * term + AXIS];
  const float *weight = a.windows + (3 * term + AXIS) * a.stride;
  const int64_t n = g.outer * g.image() / extent * runs;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    const int64_t line = i / step, inner = i - line * step, outer = line / runs;
    const int first = (int)(line - outer * runs) * kRun;
    const int64_t at = outer * extent * step + inner;
    float sum[kRun] = {};
    if constexpr (ADDS)
      for (int j = 0; j < kRun && first + j < extent; j++) sum[j] = before[at + (first + j) * step];
    slide<0>(sum, weight, size, [&](int k) {
      return (float)load(in + at + border_place(first + k - size / 2, extent, REFLECT_101) * step);
    });
    for (int j = 0; j < kRun && first + j < extent; j++) out[at + (first + j) * step] = saturate<Out>(sum[j]);
  }
}

// FROM, TO: part of the scratch memory, `volume` floats each; -1: input or output.
template <int AXIS, int TERM, int FROM, int TO, class Out, class In>
DEVICE void separable_pass(const Launch &l, int64_t volume) {
  constexpr int kParts = 3, kSums = 2;
  FOR_SAMPLES(sample, l) {
    const Tensor x = l.tensors[1][sample];
    if (x.volume() == 0) continue;
    const SeparableArgs a = separable_args(l, sample);
    const Grid g(x, a.n_outer, a.n_space);
    float *parts = (float *)l.scratch + sample * kParts * volume, *sums = parts + kSums * volume;
    constexpr bool kAdds = AXIS == 1 && TERM > 0;
    auto to = [&](auto *from) {
      if constexpr (TO < 0)
        separable_line<AXIS, kAdds>(l.tensors[0][sample].as<Out>(), sums, from, g, a, TERM);
      else
        separable_line<AXIS, kAdds>(parts + TO * volume, sums, from, g, a, TERM);
    };
    if constexpr (FROM < 0)
      to(x.as<In>());
    else
      to((const float *)(parts + FROM * volume));
  }
}
