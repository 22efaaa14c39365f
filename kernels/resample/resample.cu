// SPDX-License-Identifier: Apache-2.0
// form: block
// A block of threads makes a tile of the last output: rows of the input are combined into rows in shared memory, which
// are then combined along the row; the LOCALs behind follow in registers. What the passes hold in between depends on
// the types (see resample_passes.h).
#include "core/gpu_chain.h"
#include "resample/resample_passes.h"
#include "resample/resample_places.h"

constexpr int kMostColumns = 256, kMostRows = 32;  // of a tile
constexpr int kPoolWords = 10752;                  // shared memory for weights and rows
constexpr int kWeightWords = 2048;                 // of which the weights of a tile's rows take no more

// How the tiles of a sample are cut; the same in all threads.
struct Tiling {
  int width, height, across, n;  // of a tile; how many
  int row_words, rows;           // words of a row in shared memory; rows at a time
  int row_stride;                // weights per output row

  // False if not even a small tile fits.
  template <class Passes>
  DEVICE bool of(int out_height, int out_width, const GpuAxis &y, const GpuAxis &x) {
    row_stride = (y.taps + 1) & ~1;
    height = balanced(out_height, kMostRows);
    while (height > 1 && height * row_stride > kWeightWords) height = (height + 1) / 2;
    if (height * row_stride > kWeightWords) return false;
    width = balanced(out_width, kMostColumns < (int)blockDim.x ? kMostColumns : (int)blockDim.x);
    for (;; width = (width + 1) / 2) {
      const double scale = x.x.scale < 0 ? -x.x.scale : x.x.scale;
      const double most = (width - 1) * scale + 2 * x.x.radius + 3 + x.taps;
      const int pixels = most < (double)x.length ? (int)most : (int)x.length;
      row_words = Passes::words(pixels);
      const int64_t room = (int64_t)kPoolWords - height * row_stride - (int64_t)width * x.taps;
      rows = (int)(room > 0 ? room / row_words : 0);
      if (rows >= kQuad || rows >= height || width == 1) break;
    }
    rows = rows < height ? rows : height;
    rows = rows < 4 * kQuad ? rows : 4 * kQuad;
    across = (out_width + width - 1) / width;
    n = across * ((out_height + height - 1) / height);
    return rows > 0;
  }
  DEVICE static int balanced(int n, int most) {
    const int parts = (n + most - 1) / most;
    return parts > 0 ? (n + parts - 1) / parts : 1;
  }
};

// Where the rows and columns of a tile lie in the output of the resampling: -1 for what is filled.
template <class Chain>
DEVICE void locate_tile(const Chain &chain, int top, int left, int height, int width, int32_t *rows, int32_t *columns) {
  const int tid = threadIdx.x, step = blockDim.x;
  if constexpr (!Chain::kFills) {
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
}

// IN: where the input is in l.tensors. SIZES: whether l.tensors[1] takes the input's size.
template <class To, class From, class Chain, int IN, bool SIZES>
DEVICE void resample_tiles(const Launch &l) {
  typedef typename Chain::Kind Last;
  typedef Passes<To, From> P;
  DYNAMIC_SHARED(int32_t, pool);
  __shared__ float nodes[2][kMostNodes];
  __shared__ int32_t rows[kMostRows], columns[kMostColumns], first_row[kMostRows], first_column[kMostColumns];
  __shared__ int32_t range[2];
  const int tid = threadIdx.x, step = blockDim.x;
  FOR_SAMPLES(sample, l) {
    const ResampleArgs &a = ((const ResampleArgs *)l.args[0])[sample];
    const Tensor &out = l.tensors[0][sample], &in = l.tensors[IN][sample];
    if (SIZES && blockIdx.x == 0 && tid < a.n_axes) l.tensors[1][sample].as<int32_t>()[tid] = (int32_t)a.in_size[tid];
    const int out_height = (int)Last::extent(out, 0), out_width = (int)Last::extent(out, 1);
    if (out.volume() == 0 || in.volume() == 0) continue;
    GpuAxis y, x;
    y.of(a, 0, From::extent(in, 0));
    x.of(a, 1, From::extent(in, 1));
    Tiling t;
    Chain chain;
    chain.begin(l, sample);
    Place<Last> to;
    to.begin(out);
    if (!t.template of<P>(out_height, out_width, y, x)) {
      // Thousands of taps: every output by itself.
      Resampled<To, From> all;
      all.begin(a, in);
      for (int64_t i = (int64_t)blockIdx.x * step + tid; i < (int64_t)out_height * out_width;
           i += (int64_t)gridDim.x * step) {
        int32_t at[2] = {(int32_t)(i / out_width), (int32_t)(i % out_width)};
        typename Last::T *p = to.at(at);
        Found<Chain::kSteps> found;
        chain.locate(at, found);
        typename To::T pixel[To::C];
        if (!Chain::kFills || !found.filled) all.read(at, pixel);
        write_pixel<Last>(chain, found, pixel, p, to.channel);
      }
      continue;
    }
    int32_t *weights_y = pool, *weights_x = pool + t.height * t.row_stride;
    int32_t *buffer = pool + ((t.height * t.row_stride + t.width * x.taps + 3) & ~3);
    typename P::Input source;
    source.begin(in);

    bool has_nodes = false;
    for (int tile = blockIdx.x; tile < t.n; tile += gridDim.x) {
      const int down = tile / t.across, top = down * t.height, left = (tile - down * t.across) * t.width;
      const int height = out_height - top < t.height ? out_height - top : t.height;
      const int width = out_width - left < t.width ? out_width - left : t.width;
      __syncthreads();
      if (!has_nodes)
        for (int i = tid; i < kMostNodes; i += step)
          nodes[0][i] = (float)filter_node(y.x.filter, i), nodes[1][i] = (float)filter_node(x.x.filter, i);
      if (tid == 0) range[0] = (int32_t)x.length, range[1] = 0;
      locate_tile(chain, top, left, height, width, rows, columns);
      __syncthreads();
      has_nodes = true;
      for (int i = tid; i < height + width; i += step) {
        if (i < height) {
          float *w = (float *)weights_y + i * t.row_stride;
          if (rows[i] < 0) {
            first_row[i] = 0;
            for (int k = 0; k < t.row_stride; k++) w[k] = 0;
            continue;
          }
          if (y.taps < t.row_stride) w[y.taps] = 0;
          first_row[i] = make_taps(y, nodes[0], rows[i], w, 1);
          P::prepare_row(w, y.taps, t.row_stride);
        } else {
          const int j = i - height;
          if (columns[j] < 0) continue;
          float *w = (float *)weights_x + j;
          const int first = make_taps(x, nodes[1], columns[j], w, t.width);
          P::prepare_column(w, x.taps, t.width);
          first_column[j] = first;
          atomicMin(range, first);
          atomicMax(range + 1, first + x.taps);
        }
      }
      __syncthreads();
      const int lo = range[0], pixels = range[1] - lo;
      const int groups = step / t.width, mine = tid / t.width, column = tid - mine * t.width;
      for (int begin = 0; begin < height; begin += t.rows) {
        const int n = height - begin < t.rows ? height - begin : t.rows;
        if (begin) __syncthreads();
        if (pixels > 0)
          P::down(source, buffer, t.row_words, first_row + begin, weights_y + begin * t.row_stride, t.row_stride, n,
                  (int)y.length, lo, pixels);
        __syncthreads();
        if (mine >= groups || column >= width) continue;
        for (int r = mine * kQuad; r < n; r += groups * kQuad) {
          typename To::T pixel[kQuad][To::C];
          if (columns[column] >= 0)
            P::across(pixel, buffer, t.row_words, r, n, first_column[column] - lo, pixels, weights_x + column, t.width,
                      x.taps);
#pragma unroll
          for (int q = 0; q < kQuad; q++) {
            if (r + q >= n) break;
            int32_t at[2] = {top + begin + r + q, left + column};
            typename Last::T *p = to.at(at);
            Found<Chain::kSteps> found;
            chain.locate(at, found);
            write_pixel<Last>(chain, found, pixel[q], p, to.channel);
          }
        }
      }
    }
  }
}
