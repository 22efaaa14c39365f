// SPDX-License-Identifier: Apache-2.0
// Tiles of images with their surroundings in shared memory.
#pragma once
#include "core/gpu.h"
#include "filter/border.h"

constexpr int kTileChannels = 8;  // most interleaved channels of a tile; more are split into chunks

DEVICE int ceil_div(int64_t a, int b) { return (int)(((uint32_t)a + b - 1) / (uint32_t)b); }

// Division by an invariant integer by multiplication: exact for i * n < 2^32.
struct Divisor {
  uint32_t n, reciprocal;
  DEVICE explicit Divisor(uint32_t by) : n(by), reciprocal(0xffffffffu / by + 1) {}
  DEVICE uint32_t of(uint32_t i) const { return n == 1 ? i : (uint32_t)((uint64_t)i * reciprocal >> 32); }
};

// As the constructor of Grid, without arrays in local memory.
DEVICE Grid grid_of(const Tensor &x, int n_outer, int n_space) {
  Grid g;
  g.outer = g.d = g.h = g.w = g.c = 1;
  const int ndim = x.ndim;
#pragma unroll
  for (int i = 0; i < kMaxDims; i++) {
    if (i >= ndim) break;
    const int64_t n = x.shape[i];
    const int axis = i < n_outer ? -1 : 3 - n_space + i - n_outer;  // spatial
    if (axis < 0)
      g.outer *= n;
    else if (i >= n_outer + n_space)
      g.c *= n;
    else if (axis == 0)
      g.d = n;
    else if (axis == 1)
      g.h = n;
    else
      g.w = n;
  }
  return g;
}

// The tiles of a sample: rows and columns of pixels and a chunk of channels, in all images and slices. C: the number of
// channels, if known and at most kTileChannels, else 0.
template <int C = 0>
struct TilesOf {
  int32_t channels, columns, down, across, chunks;
  int64_t n;
  // A row of a tile has at most `elements` elements.
  DEVICE TilesOf(const Grid &g, int rows, int elements) {
    channels = C ? C : g.c < kTileChannels ? (int)g.c : kTileChannels;
    columns = (uint32_t)elements / (uint32_t)channels;
    down = ceil_div(g.h, rows), across = ceil_div(g.w, columns), chunks = C ? 1 : ceil_div(g.c, channels);
    n = g.outer * g.d * down * across * chunks;
  }
};
typedef TilesOf<> Tiles;

// A tile: its slice among all slices, its first row, column and channel, and its size.
struct Tile {
  int64_t slice;
  int32_t y, x, channel, rows, columns, channels;
  template <int C>
  DEVICE Tile(const TilesOf<C> &t, const Grid &g, int most_rows, int64_t i) {
    const uint32_t per_slice = t.down * t.across * t.chunks;
    slice = i >> 32 ? i / per_slice : (uint32_t)i / per_slice;
    uint32_t rest = (uint32_t)(i - slice * per_slice);
    const uint32_t down = rest / (uint32_t)(t.across * t.chunks);
    rest -= down * (t.across * t.chunks);
    const uint32_t chunk = C ? 0 : rest / (uint32_t)t.across;
    y = down * most_rows, x = (rest - chunk * t.across) * t.columns, channel = chunk * t.channels;
    rows = g.h - y < most_rows ? (int)(g.h - y) : most_rows;
    columns = g.w - x < t.columns ? (int)(g.w - x) : t.columns;
    channels = C ? C : g.c - channel < t.channels ? (int)(g.c - channel) : t.channels;
  }
};

// Loads a rectangle of a slice from (y, x) on, which may reach beyond the image: to[row * pitch + column * channels +
// channel]. A warp takes a row, and each lane kPer of its elements.
template <class S, class T>
DEVICE void load_rectangle(S *to, int pitch, const T *slice, const Grid &g, int y, int x, int rows, int columns,
                           int channel, int channels, int border, S fill) {
  constexpr int kPer = 5;
  const int h = (int)g.h, w = (int)g.w, c = (int)g.c, n = columns * channels, warps = blockDim.x / 32;
  const int64_t step = g.row();
  const Divisor pixel(channels);
  for (int first = threadIdx.x & 31; first < n; first += 32 * kPer) {
    int from[kPer];  // offsets in a row of the image
    bool outside[kPer];
#pragma unroll
    for (int k = 0; k < kPer; k++) {
      const int e = first + 32 * k, p = (int)pixel.of(e),
                place = e < n ? border_place_of<int32_t>(x + p, w, border) : 0;
      outside[k] = place < 0;
      from[k] = e < n && place >= 0 ? place * c + channel + e - p * channels : 0;
    }
    // All loads come before the stores, so that a warp waits once for two rows.
    for (int r = threadIdx.x / 32; r < rows; r += 2 * warps) {
      T v[2][kPer];
      int row[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        row[i] = border_place_of<int32_t>(y + (r + i * warps < rows ? r + i * warps : r), h, border);
        const T *line = slice + (row[i] < 0 ? 0 : row[i]) * step;
#pragma unroll
        for (int k = 0; k < kPer; k++) v[i][k] = load(line + from[k]);
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (r + i * warps >= rows) break;
        S *line = to + (r + i * warps) * pitch + first;
#pragma unroll
        for (int k = 0; k < kPer; k++)
          if (first + 32 * k < n) line[32 * k] = row[i] < 0 || outside[k] ? fill : (S)v[i][k];
      }
    }
  }
}

// The smallest pitch for rows of n elements at which the elements of a column lie in different banks.
template <class S>
DEVICE constexpr int odd_pitch(int n) {
  return ((n * (int)sizeof(S) + 3) / 4 | 1) * 4 / (int)sizeof(S);
}

// Offset in a row of the image of the element `column` of a tile's row.
DEVICE int64_t place_in_row(const Tile &tile, const Grid &g, int column) {
  if (tile.channels == g.c) return (int64_t)tile.x * tile.channels + column;
  const int p = (uint32_t)column / (uint32_t)tile.channels;
  return (int64_t)(tile.x + p) * g.c + tile.channel + column - p * tile.channels;
}
