// SPDX-License-Identifier: Apache-2.0
// Tiles of images with what lies around them, in shared memory.
#pragma once
#include "core/gpu.h"
#include "filter/border.h"

constexpr int kTileChannels = 8;  // side by side in a tile; more are handled apart

DEVICE int ceil_div(int64_t a, int b) { return (int)((a + b - 1) / b); }

// The tiles of a sample: rows and columns of pixels, and a part of the channels, in all images and slices.
struct Tiles {
  int32_t channels, columns, down, across, chunks;
  int64_t n;
  // A tile has at most `elements` elements in a row.
  DEVICE Tiles(const Grid &g, int rows, int elements) {
    channels = g.c < kTileChannels ? (int)g.c : kTileChannels;
    columns = elements / channels;
    down = ceil_div(g.h, rows), across = ceil_div(g.w, columns), chunks = ceil_div(g.c, channels);
    n = g.outer * g.d * down * across * chunks;
  }
};

// One of them: its slice among all, its first row, column and channel, and how many there are.
struct Tile {
  int64_t slice;
  int32_t y, x, channel, rows, columns, channels;
  DEVICE Tile(const Tiles &t, const Grid &g, int most_rows, int64_t i) {
    const uint32_t per_slice = t.down * t.across * t.chunks;
    slice = i / per_slice;
    uint32_t rest = (uint32_t)(i - slice * per_slice);
    const uint32_t down = rest / (t.across * t.chunks);
    rest -= down * (t.across * t.chunks);
    const uint32_t chunk = rest / (uint32_t)t.across;
    y = down * most_rows, x = (rest - chunk * t.across) * t.columns, channel = chunk * t.channels;
    rows = g.h - y < most_rows ? (int)(g.h - y) : most_rows;
    columns = g.w - x < t.columns ? (int)(g.w - x) : t.columns;
    channels = g.c - channel < t.channels ? (int)(g.c - channel) : t.channels;
  }
};

// Writes n elements that begin at from, taken by words of 4 bytes; word q begins `lead` elements earlier for q = 0.
template <class S, class T>
DEVICE void spread_word(S *to, const T *from, int q, int n) {
  constexpr int kPer = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  if constexpr (kPer == 1) {
    if (q < n) to[q] = (S)load(from + q);
  } else {
    const int lead = (int)((unsigned long long)from / sizeof(T)) & (kPer - 1), first = q * kPer - lead;
    if (first >= n) return;
    const uint32_t word = load((const uint32_t *)(from - lead) + q);
#pragma unroll
    for (int k = 0; k < kPer; k++) {
      // Lanes take turns, so that they write to different banks.
      const int j = sizeof(S) == 4 ? (k + (int)(threadIdx.x & 31) * kPer / 32) & (kPer - 1) : k;
      T x;
      if constexpr (sizeof(T) == 1) {
        const uint8_t bits = (uint8_t)(word >> (8 * j));
        x = *(const T *)&bits;
      } else {
        const uint16_t bits = (uint16_t)(word >> (16 * j));
        x = *(const T *)&bits;
      }
      if (first + j >= 0 && first + j < n) to[first + j] = (S)x;
    }
  }
}

// to[row * pitch + column * channels + channel] = the elements of a slice in a rectangle that begins at (y, x), which
// may reach beyond the image.
template <class S, class T>
DEVICE void load_rectangle(S *to, int pitch, const T *slice, const Grid &g, int y, int x, int rows, int columns,
                           int channel, int channels, int border, S fill) {
  const int h = (int)g.h, w = (int)g.w, c = (int)g.c;
  int begin = x < 0 ? -x : 0, end = w - x < columns ? w - x : columns;  // what lies inside
  if (channels != c || end < begin) begin = end = 0;
  if (begin < end) {
    constexpr int kPer = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    const int n = (end - begin) * c;
    const uint32_t words = (n + 2 * (kPer - 1)) / kPer;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < rows * words; i += blockDim.x) {
      const uint32_t r = i / words;
      const int row = border_place_of<int32_t>(y + (int)r, h, border);
      S *at = to + r * pitch + begin * c;
      if (row >= 0) {
        spread_word(at, slice + ((int64_t)row * w + x + begin) * c, i - r * words, n);
      } else {
        for (int q = i - r * words; q < n; q += words) at[q] = fill;
      }
    }
  }
  const int outside = columns - (end - begin);
  if (outside == 0) return;
  const uint32_t per_row = outside * channels;
  for (uint32_t i = threadIdx.x; i < rows * per_row; i += blockDim.x) {
    const uint32_t r = i / per_row, rest = i - r * per_row, p = rest / (uint32_t)channels;
    const int ch = rest - p * channels, column = (int)p < begin ? p : p + (end - begin);
    const int row = border_place_of<int32_t>(y + (int)r, h, border),
              from = border_place_of<int32_t>(x + column, w, border);
    S *at = to + r * pitch + column * channels + ch;
    *at = row < 0 || from < 0 ? fill : (S)load(slice + ((int64_t)row * w + from) * c + channel + ch);
  }
}

// The least number of elements of a row of n at which the rows of a column lie in different banks.
template <class S>
DEVICE constexpr int odd_pitch(int n) {
  return ((n * (int)sizeof(S) + 3) / 4 | 1) * 4 / (int)sizeof(S);
}

// Where the elements of a tile's row lie in a row of the image.
DEVICE int64_t place_in_row(const Tile &tile, const Grid &g, int column) {
  if (tile.channels == g.c) return (int64_t)tile.x * tile.channels + column;
  const int p = column / tile.channels;
  return (int64_t)(tile.x + p) * g.c + tile.channel + column - p * tile.channels;
}
