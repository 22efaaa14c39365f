// SPDX-License-Identifier: Apache-2.0
#include "geometry/warp.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "geometry/inside_rows.h"

namespace {

constexpr int kRows = 4;       // rows of the output per vector of coordinates, one lane each
constexpr int kColumns = 256;  // columns per block; add_steps starts a new sum at each block

typedef float Lanes __attribute__((vector_size(4 * kRows)));
typedef int32_t Order __attribute__((vector_size(4 * kRows)));

inline void transpose(Lanes (&v)[kRows]) {
  const Lanes a = __builtin_shuffle(v[0], v[1], Order{0, 4, 1, 5}),
              b = __builtin_shuffle(v[2], v[3], Order{0, 4, 1, 5});
  const Lanes c = __builtin_shuffle(v[0], v[1], Order{2, 6, 3, 7}),
              d = __builtin_shuffle(v[2], v[3], Order{2, 6, 3, 7});
  v[0] = __builtin_shuffle(a, b, Order{0, 1, 4, 5}), v[1] = __builtin_shuffle(a, b, Order{2, 3, 6, 7});
  v[2] = __builtin_shuffle(c, d, Order{0, 1, 4, 5}), v[3] = __builtin_shuffle(c, d, Order{2, 3, 6, 7});
}

// Coordinates along one axis of the input, each computed independently. `row` is a row of the matrix.
CLONES void by_themselves(float *__restrict coordinate, const float *row, int dims, int32_t first, int32_t n, float y,
                          float z) {
  const float step = row[0], rest = warp_rest(row, dims, y, z);
  for (int32_t x = 0; x < n; x++) coordinate[x] = warp_coordinate(step, first + x, rest);
}

// Input coordinates, along each axis, of kRows rows of the output, block by block. With `add_steps`, sums are in DALI's
// order, so that ties between neighbours are decided as in DALI.
template <int kDims>
class Coordinates {
 public:
  float of[kDims][kRows][kColumns];

  explicit Coordinates(const WarpArgs &a) : a_(a) {}
  // Starts the rows from (y, z) on.
  void begin(int64_t y, int64_t z) {
    y_ = y + a_.origin[1], z_ = z + a_.origin[2];
    for (int d = 0; d < kDims; d++) {
      const float *row = a_.matrix + d * (kDims + 1);
      for (int r = 0; r < kRows; r++) {
        float at = row[kDims] + row[0] * 0.5f;
        at += row[1] * ((float)(y_ + r) + 0.5f);
        if (kDims == 3) at += row[2] * ((float)z_ + 0.5f);
        start_[d][r] = at;
      }
    }
    for (int64_t i = a_.origin[0] / kColumns; i > 0; i--) to_next_block();
  }
  // Fills in the columns from x to the end of the block or of the rows, whichever comes first. Returns their number.
  int32_t fill(int64_t x, int64_t end) {
    const int64_t column = a_.origin[0] + x;
    const int skipped = (int)(column % kColumns);
    const int32_t n = (int32_t)std::min<int64_t>(kColumns - skipped, end - x);
    if (a_.add_steps) {
      add_up(skipped, n);
      to_next_block();
      return n;
    }
    for (int d = 0; d < kDims; d++)
      for (int r = 0; r < kRows; r++)
        by_themselves(of[d][r], a_.matrix + d * (kDims + 1), kDims, (int32_t)column, n, (float)(y_ + r), (float)z_);
    return n;
  }

 private:
  float step(int d) const { return a_.matrix[d * (kDims + 1)]; }
  void to_next_block() {
    for (int d = 0; d < kDims; d++) start_[d] += kColumns * step(d);
  }
  void add_up(int skipped, int32_t n) {
    Lanes at[kDims];
    float step[kDims];  // a local copy, which stores cannot alias
    for (int d = 0; d < kDims; d++) at[d] = start_[d], step[d] = this->step(d);
    for (int x = 0; x < skipped; x++)
      for (int d = 0; d < kDims; d++) at[d] += step[d];
    for (int32_t x = 0; x < n; x += kRows) {  // kColumns is a multiple of kRows
      for (int d = 0; d < kDims; d++) {
        Lanes columns[kRows];
        for (Lanes &c : columns) c = at[d], at[d] += step[d];
        transpose(columns);
        for (int r = 0; r < kRows; r++) memcpy(of[d][r] + x, &columns[r], sizeof(Lanes));
      }
    }
  }
  const WarpArgs &a_;
  Lanes start_[kDims];
  int64_t y_ = 0, z_ = 0;
};

// Splits coordinates into the lower neighbour and the weight of the upper one. Flattened, as a call per coordinate
// would cost more than the rest.
CLONES __attribute__((flatten)) void split(int32_t *__restrict index, float *__restrict weight,
                                           const float *__restrict coordinate, int32_t n, int64_t extent, bool linear,
                                           bool clamp) {
  for (int32_t x = 0; x < n; x++) index[x] = warp_split(coordinate[x], extent, linear, clamp, weight + x);
}

// Elements whose neighbours may be outside. Not inlined, as it is long and called twice.
template <class Out, int kDims, class In>
__attribute__((noinline)) void looked_up(Out *out, const Source<kDims, In> &s, int64_t begin, int64_t end,
                                         bool is_linear) {
  for (int64_t x = begin; x < end; x++) {
    Out *const o = out + x * s.channels;
    is_linear ? linear(o, s, x) : nearest(o, s, x);
  }
}

template <class Out, int kDims, class In>
void warp_row(Out *out, const Source<kDims, In> &s, int64_t n, bool is_linear, Out outside_value) {
  const int hi = is_linear ? -1 : 0;
  int64_t touching = 0, untouched = n, inside, outside;
  run_within(s, n, 0, hi, &inside, &outside);
  if (s.fill && is_linear)
    run_within(s, n, hi, 0, &touching, &untouched);
  else if (s.fill)
    touching = inside, untouched = outside;
  if (inside == outside) inside = outside = untouched;
  auto filled = [&](int64_t begin, int64_t end) {
    std::fill(out + begin * s.channels, out + end * s.channels, outside_value);
  };
  filled(0, touching);
  looked_up(out, s, touching, inside, is_linear);
  if (!is_linear)
    nearest_inside_fastest(out, s, inside, outside);
  else
    linear_inside_fastest(out, s, inside, outside);
  looked_up(out, s, outside, untouched, is_linear);
  filled(untouched, n);
}

template <int kDims, class Out, class In>
void warp(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  Source<kDims, In> s;
  const int ndim = in->ndim, first = ndim - 1 - kDims;  // axes before the spatial ones are those of a sequence
  int64_t size[3] = {1, 1, 1}, frames = 1, in_frame = 1;
  s.channels = (int)in->shape[ndim - 1];
  in_frame = s.channels;
  for (int d = 0; d < kDims; d++) {
    s.extent[d] = in->shape[ndim - 2 - d], size[d] = out->shape[ndim - 2 - d];
    s.step[d] = in_frame, in_frame *= s.extent[d];
  }
  for (int d = 0; d < first; d++) frames *= in->shape[d];
  if (out->volume() == 0) return;
  if (in_frame == 0 && a.clamp) fail("the input is empty and has no border to repeat; give a fill_value");
  const int64_t n = size[0];
  check_row(n, a.origin[0]);
  In *fill = scratch.array<In>(s.channels, 0);
  for (int c = 0; c < s.channels; c++) fill[c] = saturate<In>(a.fill);
  s.fill = a.clamp ? nullptr : fill;
  // Interpolation treats the fill as an element of the input, so it is converted to the input's type first.
  const Out outside_value = a.linear ? saturate<Out>(saturate<In>(a.fill)) : saturate<Out>(a.fill);
  Coordinates<kDims> coordinates(a);
  int32_t index[kDims][kColumns];
  float weight[kDims][kColumns];
  for (int d = 0; d < kDims; d++) s.index[d] = index[d], s.weight[d] = weight[d];
  for (int64_t z = 0; z < size[2]; z++) {
    for (int64_t y = 0; y < size[1]; y += kRows) {
      coordinates.begin(y, z);
      for (int64_t x = 0, columns; x < n; x += columns) {
        columns = coordinates.fill(x, n);
        for (int r = 0; r < std::min<int64_t>(kRows, size[1] - y); r++) {
          for (int d = 0; d < kDims; d++)
            split(index[d], weight[d], coordinates.of[d][r], (int32_t)columns, s.extent[d], a.linear, a.clamp);
          for (int64_t f = 0; f < frames; f++) {
            s.data = in->as<In>() + f * in_frame;
            Out *const o = out->as<Out>() + (((f * size[2] + z) * size[1] + y + r) * n + x) * s.channels;
            warp_row(o, s, columns, a.linear, outside_value);
          }
        }
      }
    }
  }
}

template <class Out, class In>
void warp_dims(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  a.dims == 2 ? warp<2, Out, In>(out, in, a, scratch) : warp<3, Out, In>(out, in, a, scratch);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  for_types<uint8_t, int16_t, int32_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    if (out->dtype == FLOAT) return warp_dims<float, In>(out, in, a, scratch);
    if (out->dtype == in->dtype) return warp_dims<In, In>(out, in, a, scratch);
    if constexpr (IsFloat<In>::value)
      for_types<uint8_t, int16_t, int32_t>(out->dtype,
                                           [&](auto o) { warp_dims<decltype(o), In>(out, in, a, scratch); });
    else
      fail("[internal error] no kernel for these data types");
  });
}

EXPORT_KERNEL(warp, WarpArgs, run)
