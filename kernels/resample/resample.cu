// SPDX-License-Identifier: Apache-2.0
// form: block
// computes along: first_axis, n_axes
// A block of threads makes a tile of the last output. Rows of the input are combined into rows in shared memory, which
// are then combined along the row; the following LOCAL kernels run in registers. The intermediate type depends on the
// types of the tensors (see resample_passes.h).
#include "core/gpu_chain.h"
#include "resample/resample_passes.h"
#include "resample/resample_places.h"

constexpr int kMostColumns = 256, kMostRows = 32;  // largest tile
constexpr int kPoolWords = 10752;                  // shared memory for weights and rows
constexpr int kWeightWords = 2048;                 // words of it for the weights of a tile's rows, at most

// How a sample is cut into tiles; the same for all threads.
struct Tiling {
  int width, height, across, n;  // of a tile; number of tiles
  int row_words, rows;           // words of a row in shared memory; rows at a time
  int row_stride;                // weights per output row

  // With at most _MOST_TAPS of resample.py, there is room for at least one column and row.
  template <class Passes>
  DEVICE void of(int out_height, int out_width, const GpuAxis &y, const GpuAxis &x) {
    row_stride = (y.taps + 1) & ~1;
    height = balanced(out_height, kMostRows);
    while (height > 1 && height * row_stride > kWeightWords) height = (height + 1) / 2;
    width = balanced(out_width, kMostColumns < (int)blockDim.x ? kMostColumns : (int)blockDim.x);
    for (;; width = (width + 1) / 2) {
      const double scale = x.x.scale < 0 ? -x.x.scale : x.x.scale;
      const double most = (width - 1) * scale + 2 * x.x.radius + 6 + x.taps;
      const int pixels = most < (double)x.length ? (int)most : (int)x.length;
      row_words = Passes::words(pixels);
      const int64_t room = (int64_t)kPoolWords - height * row_stride - (int64_t)width * x.taps;
      rows = (int)(room > 0 ? room / row_words : 0);
      if (rows >= kQuad || rows >= height || width == 1) break;
    }
    rows = rows < height ? rows : height;
    rows = rows < 4 * kQuad ? rows : 4 * kQuad;
    across = (out_width + width - 1) / width;
    n = rows > 0 ? across * ((out_height + height - 1) / height) : 0;
  }
  DEVICE static int balanced(int n, int most) {
    const int parts = (n + most - 1) / most;
    return parts > 0 ? (n + parts - 1) / parts : 1;
  }
};

// Shared by the threads of a block. What needs many registers is in functions that are not inlined and called once per
// tile, so that many threads can run the passes over pixels.
struct Tile {
  GpuAxis y, x;
  Tiling tiling;
  float nodes[2][kMostNodes];
  // Per row and column: position in the output of the resampling, and first input. lo, hi: the columns that are read.
  int32_t rows[kMostRows], columns[kMostColumns], first_row[kMostRows], first_column[kMostColumns];
  int32_t lo, hi;
};

// Everything of a sample that does not depend on pixels.
template <class Passes>
__device__ __noinline__ void begin_sample(Tile &tile, const ResampleArgs &a, int64_t in_height, int64_t in_width,
                                          int out_height, int out_width) {
  __syncthreads();
  if (threadIdx.x == 0) {
    tile.y.of(a, 0, in_height);
    tile.x.of(a, 1, in_width);
    tile.tiling.of<Passes>(out_height, out_width, tile.y, tile.x);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * kMostNodes; i += blockDim.x) {
    const int axis = i >= kMostNodes, filter = axis ? tile.x.x.filter : tile.y.x.filter;
    if (filter == CUBIC || filter == LANCZOS3 || filter == GAUSSIAN)
      tile.nodes[axis][i - axis * kMostNodes] = computed_node(filter, i - axis * kMostNodes);
  }
}

// Computes the weights of a tile whose rows and columns are known.
template <class Passes>
__device__ __noinline__ void make_weights(Tile &tile, int height, int width, int32_t *weights_y, int32_t *weights_x) {
  const int stride_y = tile.tiling.row_stride, stride_x = tile.tiling.width;
  for (int i = threadIdx.x; i < height + width; i += blockDim.x) {
    const bool is_row = i < height;
    const int j = is_row ? i : i - height, place = is_row ? tile.rows[j] : tile.columns[j];
    float *w = is_row ? (float *)weights_y + j * stride_y : (float *)weights_x + j;
    const int n = is_row ? stride_y : tile.x.taps, stride = is_row ? 1 : stride_x;
    for (int k = 0; k < n; k++) w[k * stride] = 0;
    if (place < 0) {
      (is_row ? tile.first_row[j] : tile.first_column[j]) = 0;
      continue;
    }
    const GpuAxis &g = is_row ? tile.y : tile.x;
    const int first = make_taps(g, tile.nodes[is_row ? 0 : 1], place, w, stride);
    (is_row ? tile.first_row[j] : tile.first_column[j]) = first;
    if (is_row) {
      Passes::prepare_row(w, g.taps, stride_y);
    } else {
      Passes::prepare_column(w, g.taps, stride);
      atomicMin(&tile.lo, first);
      atomicMax(&tile.hi, first + g.taps);
    }
  }
}

// Finds the rows and columns of a tile in the output of the resampling; -1 for filled ones. Returns whether nothing is
// filled.
template <class Chain>
DEVICE bool locate_tile(const Chain &chain, int top, int left, int height, int width, int32_t *rows, int32_t *columns) {
  const int tid = threadIdx.x, step = blockDim.x;
  bool inside = true;
  if constexpr (Chain::kFills) {
    int32_t first[2] = {top, left}, last[2] = {top + height - 1, left + width - 1};
    Found<Chain::kSteps> found_first, found_last;
    chain.locate(first, found_first);
    chain.locate(last, found_last);
    inside = !found_first.filled && !found_last.filled;
  }
  if (inside) {
    for (int i = tid; i < height + width; i += step) {
      int32_t at[2] = {i < height ? top + i : top, i < height ? left : left + i - height};
      Found<Chain::kSteps> found;
      chain.locate(at, found);
      if (i < height)
        rows[i] = at[0];
      else
        columns[i - height] = at[1];
    }
  } else {
    for (int i = tid; i < height + width; i += step) (i < height ? rows[i] : columns[i - height]) = -1;
    __syncthreads();
    for (int i = tid; i < height * width; i += step) {
      const int row = i / width, column = i - row * width;
      int32_t at[2] = {top + row, left + column};
      Found<Chain::kSteps> found;
      chain.locate(at, found);
      if (found.filled) continue;
      atomicMax(rows + row, at[0]);
      atomicMax(columns + column, at[1]);
    }
  }
  return inside;
}

// IN: index of the input in l.tensors. SIZES: whether l.tensors[1] receives the size of the input.
template <class To, class From, class Chain, int IN, bool SIZES>
DEVICE void resample_tiles(const Launch &l) {
  typedef typename Chain::Kind Last;
  typedef Passes<To, From> P;
  DYNAMIC_SHARED(int32_t, pool);
  __shared__ Tile tile;
  const int tid = threadIdx.x;
  FOR_SAMPLES(sample, l) {
    const ResampleArgs &a = ((const ResampleArgs *)l.args[0])[sample];
    const Tensor &out = l.tensors[0][sample], &in = l.tensors[IN][sample];
    if (SIZES && blockIdx.x == 0 && tid < a.n_axes) l.tensors[1][sample].as<int32_t>()[tid] = (int32_t)a.in_size[tid];
    const int out_height = (int)Last::extent(out, 0), out_width = (int)Last::extent(out, 1);
    if (out.volume() == 0 || in.volume() == 0) continue;
    begin_sample<P>(tile, a, From::extent(in, 0), From::extent(in, 1), out_height, out_width);
    const Tiling &t = tile.tiling;
    const int tile_height = t.height, tile_width = t.width, row_words = t.row_words, row_stride = t.row_stride;
    const int taps = tile.x.taps, most_rows = t.rows, in_height = (int)tile.y.length;
    int32_t *weights_y = pool, *weights_x = pool + tile_height * row_stride;
    int32_t *buffer = pool + ((tile_height * row_stride + tile_width * taps + 3) & ~3);
    typename P::Input source;
    Chain chain;
    Place<Last> to;
    source.begin(in);
    chain.begin(l, sample);
    to.begin(out);

    for (int number = blockIdx.x; number < t.n; number += gridDim.x) {
      const int down = number / t.across, top = down * tile_height, left = (number - down * t.across) * tile_width;
      const int height = out_height - top < tile_height ? out_height - top : tile_height;
      const int width = out_width - left < tile_width ? out_width - left : tile_width;
      __syncthreads();
      if (tid == 0) tile.lo = 0x7fffffff, tile.hi = 0;
      const bool inside = locate_tile(chain, top, left, height, width, tile.rows, tile.columns);
      __syncthreads();
      make_weights<P>(tile, height, width, weights_y, weights_x);
      __syncthreads();
      const int lo = tile.lo & ~3, pixels = tile.hi - lo;  // words stay aligned; negative if all is filled
      const int groups = blockDim.x / tile_width, mine = tid / tile_width, column = tid - mine * tile_width;
      for (int begin = 0; begin < height; begin += most_rows) {
        const int n = height - begin < most_rows ? height - begin : most_rows;
        if (begin) __syncthreads();
        if (tile.hi > 0)
          P::down(source, buffer, row_words, tile.first_row + begin, weights_y + begin * row_stride, row_stride, n,
                  in_height, lo, pixels);
        __syncthreads();
        if (mine >= groups || column >= width) continue;
        for (int r = mine * kQuad; r < n; r += groups * kQuad) {
          typename To::T pixel[kQuad][To::C];
          if (tile.columns[column] >= 0)
            P::across(pixel, buffer, row_words, r, n, tile.first_column[column] - lo, pixels, weights_x + column,
                      tile_width, taps);
#pragma unroll
          for (int q = 0; q < kQuad; q++) {
            if (r + q >= n) break;
            int32_t at[2] = {top + begin + r + q, left + column};
            typename Last::T *p = to.at(at);
            Found<Chain::kSteps> found;
            if (!inside) chain.locate(at, found);
            write_pixel<Last>(chain, found, pixel[q], p, to.channel);
          }
        }
      }
    }
  }
}
