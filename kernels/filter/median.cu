// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/convert.h"
#include "filter/gpu_tile.h"
#include "filter/median.h"

constexpr int kMostHeld = 49;  // most elements of a window that are sorted in registers

template <class T>
struct MedianKey {
  typedef int Sorted;  // a type with minimum and maximum instructions
  DEVICE static uint32_t of(T x) { return x; }
  DEVICE static T value(uint32_t key) { return (T)key; }
};
template <>
struct MedianKey<float> {
  typedef float Sorted;
  DEVICE static uint32_t of(float x) { return float_key(__float_as_uint(x)); }
  DEVICE static float value(uint32_t key) { return __uint_as_float(key_float(key)); }
};

// The median of H x W elements x(i, j). SH, SW: the window size if known at compile time, else 0.
template <int SH, int SW, class T, class X>
DEVICE T median_of(int any_height, int any_width, const X &x) {
  constexpr int kSize = SH * SW;
  if constexpr (kSize == 1) {
    return x(0, 0);
  } else if constexpr (kSize > 1 && kSize <= kMostHeld) {
    typename MedianKey<T>::Sorted v[kHeld<kSize>];
    int k = 0;
    MEDIAN_UNROLL
    for (; k < kHeld<kSize>; k++) v[k] = x(k / SW, k % SW);
    forget_extremes<kHeld<kSize>>(v, [&](auto &to) {
      to = x(k / SW, k % SW);
      k++;
    });
    return (T)v[1];
  } else {
    const int height = SH > 0 ? SH : any_height, width = SW > 0 ? SW : any_width, half = height * width / 2;
    uint32_t median = 0;
    for (uint32_t one = 1u << (sizeof(T) * 8 - 1); one; one >>= 1) {
      const uint32_t least = median | one;
      int below = 0;
      for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++) below += MedianKey<T>::of(x(i, j)) < least;
      if (below <= half) median = least;
    }
    return MedianKey<T>::value(median);
  }
}

// Tiles of ROWS rows of ELEMENTS elements. C: the number of channels of all samples, or 0. Without IN_TILES, for
// windows too large for shared memory, it reads from global memory.
template <class T, int C, int SH, int SW, int ROWS, int ELEMENTS, bool IN_TILES>
DEVICE void median_tiles(const Launch &l) {
  constexpr int kThreads = 256;
  DYNAMIC_SHARED(T, whole);
  FOR_SAMPLES(sample, l) {
    const Tensor &x = l.tensors[1][sample];
    const MedianArgs &a = ((const MedianArgs *)l.args[0])[sample];
    const Grid g = grid_of(x, a.n_outer, 2);
    if (g.outer * g.image() == 0) continue;
    const TilesOf<C> tiles(g, ROWS, ELEMENTS);
    const int height = SH > 0 ? SH : a.size[0], width = SW > 0 ? SW : a.size[1];
    const int pitch = C && SW ? odd_pitch<T>((ELEMENTS / (C ? C : 1) + SW - 1) * C)
                              : odd_pitch<T>((tiles.columns + width - 1) * tiles.channels);
    for (int64_t i = blockIdx.x; i < tiles.n; i += gridDim.x) {
      const Tile tile(tiles, g, ROWS, i);
      const int c = C ? C : tile.channels, n = tile.columns * c;
      const T *in = x.as<T>() + tile.slice * g.slice();
      T *out = l.tensors[0][sample].as<T>() + tile.slice * g.slice();
      if constexpr (IN_TILES) {
        __syncthreads();
        load_rectangle(whole, pitch, in, g, tile.y - height / 2, tile.x - width / 2, tile.rows + height - 1,
                       tile.columns + width - 1, tile.channel, c, CLAMP, (T)0);
        __syncthreads();
      }
      for (int item = threadIdx.x; item < ROWS * ELEMENTS; item += kThreads) {
        const int column = item % ELEMENTS, row = item / ELEMENTS;
        if (column >= n || row >= tile.rows) continue;
        const int64_t at = place_in_row(tile, g, column);
        T median;
        if constexpr (IN_TILES) {
          const T *from = whole + row * pitch + column;
          median = median_of<SH, SW, T>(height, width, [&](int p, int q) { return from[p * pitch + q * c]; });
        } else {
          const int first = tile.y + row - height / 2, left = tile.x + column / c - width / 2;
          const int channel = tile.channel + column % c;
          median = median_of<SH, SW, T>(height, width, [&](int p, int q) {
            const int64_t y = border_place(first + p, g.h, CLAMP), z = border_place(left + q, g.w, CLAMP);
            return load(in + y * g.row() + z * g.c + channel);
          });
        }
        out[(tile.y + row) * g.row() + at] = median;
      }
    }
  }
}
