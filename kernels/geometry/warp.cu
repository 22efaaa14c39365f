// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: linear, clamp, dims
#include "core/gpu.h"
#include "geometry/gpu_sampling.h"
#include "geometry/warp.h"

template <class To, class From, int LINEAR, int CLAMP, int SPACE>
struct Warp : GatherBase {
  typedef WarpArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kPlaces = To::kUnit ? To::N : To::N - 1;  // coordinates without the channel
  static constexpr int kMost = kPlaces < 3 ? kPlaces : 3, kAtOnce = LINEAR ? kLinearAtOnce : kNearestAtOnce;
  static constexpr bool kAlways = SPACE == 2 && !LINEAR;
  typedef Sample<LINEAR ? kLinear : kNearest, CLAMP ? kBorderReplicate : kBorderConstant, From> Sampled;
  // A row of the output: its image or volume, and its share of the input coordinates.
  struct Row {
    const In *frame;
    float rest[SPACE];
  };
  struct Fetched {
    Sampled sample;
    int32_t column;  // for volumes
  };
  Place<From> in;
  float matrix[SPACE * (SPACE + 1)];
  int32_t origin[3], extent[3];
  Image<From> image;
  In fill;
  Out outside;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    image.template begin<kPlaces - 1, kPlaces - 2>(in, from);
#pragma unroll
    for (int i = 0; i < SPACE * (SPACE + 1); i++) matrix[i] = a.matrix[i];
#pragma unroll
    for (int d = 0; d < kMost; d++)
      origin[d] = (int32_t)a.origin[d], extent[d] = (int32_t)From::extent(from, kPlaces - 1 - d);
    // Interpolation treats the fill as an element of the input, so it is converted to the input's type first.
    fill = saturate<In>(a.fill);
    outside = LINEAR ? saturate<Out>(fill) : saturate<Out>(a.fill);
  }
  DEVICE void begin_row(Row &row, const int32_t (&at)[To::N]) const {
    row.frame = in.data;
#pragma unroll
    for (int d = 0; d < From::N; d++)
      if (d < kPlaces - SPACE || d >= kPlaces) row.frame += at[d] * in.step[d];
    const float y = (float)(at[kPlaces - 2] + origin[1]);
    const float z = SPACE == 3 ? (float)(at[kPlaces - SPACE] + origin[SPACE - 1]) : 0;
#pragma unroll
    for (int d = 0; d < SPACE; d++) row.rest[d] = warp_rest(matrix + d * (SPACE + 1), SPACE, y, z);
  }

  // Splits the input coordinates of a column along the spatial axes, x first.
  DEVICE void split(const Row &row, int32_t column, int32_t (&index)[SPACE], float (&weight)[SPACE]) const {
#pragma unroll
    for (int d = 0; d < SPACE; d++) {
      const float c = warp_coordinate(matrix[d * (SPACE + 1)], column + origin[0], row.rest[d]);
      index[d] = warp_split(c, extent[d], LINEAR, CLAMP, weight + d);
    }
  }
  DEVICE Image<From> image_of(const Row &row) const {
    Image<From> of = image;
    of.data = row.frame;
    return of;
  }
  DEVICE void read_volume(const Row &row, int32_t column, Out (&pixel)[To::C]) const {
    constexpr int kTaps = 8;
    const In *frame = row.frame;
    int32_t index[SPACE];
    float weight[SPACE];
    split(row, column, index, weight);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = outside;
#pragma unroll
    for (int d = 0; d < SPACE; d++)
      if (extent[d] == 0 || (!CLAMP && (index[d] < (LINEAR ? -1 : 0) || index[d] >= extent[d]))) return;
    if (!LINEAR) {
#pragma unroll
      for (int d = 0; d < 3; d++) frame += clamped(index[d], extent[d]) * in.step[kPlaces - 1 - d];
#pragma unroll
      for (int c = 0; c < To::C; c++) pixel[c] = saturate<Out>(load(frame + c * in.channel));
      return;
    }
    const In *tap[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; t++) {
      tap[t] = frame;
      bool inside = true;
#pragma unroll
      for (int d = 0; d < 3; d++) {
        const int32_t i = index[d] + (t >> d & 1);
        inside = inside && i >= 0 && i < extent[d];
        tap[t] += clamped(i, extent[d]) * in.step[kPlaces - 1 - d];
      }
      if (!CLAMP && !inside) tap[t] = nullptr;
    }
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      float v[kTaps];
#pragma unroll
      for (int t = 0; t < kTaps; t++) v[t] = (float)(tap[t] ? load(tap[t] + c * in.channel) : fill);
#pragma unroll
      for (int t = 0; t < kTaps / 2; t++) v[t] = warp_mix_x(v[2 * t], v[2 * t + 1], weight[0]);
#pragma unroll
      for (int d = 1; d < 3; d++)
#pragma unroll
        for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], weight[d]);
      pixel[c] = saturate<Out>(v[0]);
    }
  }
  DEVICE static int32_t clamped(int32_t i, int32_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

  DEVICE void begin_read_anywhere(const Row &row, int32_t column, Fetched &fetched) const {
    fetched.column = column;
    if constexpr (SPACE == 2) {
      int32_t index[SPACE];
      float weight[SPACE];
      split(row, column, index, weight);
      fetched.sample.begin(image_of(row), index[0], index[1], weight[0], weight[1]);
    }
  }
  DEVICE void begin_read(const Memory &, const Row &row, int32_t, int32_t column, Fetched &fetched) const {
    begin_read_anywhere(row, column, fetched);
  }
  DEVICE void end_read(const Row &row, const Fetched &fetched, Out (&pixel)[To::C]) const {
    if constexpr (SPACE == 3) {
      read_volume(row, fetched.column, pixel);
    } else {
      Out outsides[To::C];
      In fills[To::C];
#pragma unroll
      for (int c = 0; c < To::C; c++) outsides[c] = outside, fills[c] = fill;
      fetched.sample.end(pixel, image_of(row), outsides, fills);
    }
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Row row;
    Fetched fetched;
    begin_row(row, at);
    begin_read_anywhere(row, at[kPlaces - 1], fetched);
    end_read(row, fetched, pixel);
  }
};
