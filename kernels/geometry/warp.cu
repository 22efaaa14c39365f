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
  static constexpr int kPlaces = To::kUnit ? To::N : To::N - 1;  // coordinates that are not the channel's
  static constexpr int kMost = kPlaces < 3 ? kPlaces : 3;
  // A row of the output: the image or volume of its own, and what it adds to the coordinates in that.
  struct Row {
    const In *frame;
    float rest[SPACE];
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
    // Interpolation takes the fill for an element of the input, so that it has the input's type first.
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

  // Where along the axes of space a column lies, x first; false: no element of the input takes part.
  DEVICE bool split(const Row &row, int32_t column, int32_t (&index)[SPACE], float (&weight)[SPACE]) const {
    bool any = true;
#pragma unroll
    for (int d = 0; d < SPACE; d++) {
      const float c = warp_coordinate(matrix[d * (SPACE + 1)], column + origin[0], row.rest[d]);
      index[d] = warp_split(c, extent[d], LINEAR, CLAMP, weight + d);
      any = any && extent[d] > 0 && (CLAMP || (index[d] >= (LINEAR ? -1 : 0) && index[d] < extent[d]));
    }
    return any;
  }
  DEVICE void read_image(const Row &row, int32_t column, Out (&pixel)[To::C]) const {
    int32_t index[SPACE];
    float weight[SPACE];
    if (!split(row, column, index, weight)) return;
    Image<From> from = image;
    from.data = row.frame;
    In fills[To::C];
#pragma unroll
    for (int c = 0; c < To::C; c++) fills[c] = fill;
    sample_between<LINEAR ? kLinear : kNearest, CLAMP ? kBorderReplicate : kBorderConstant>(
        pixel, from, index[0], index[1], weight[0], weight[1], fills);
  }
  DEVICE void read_volume(const Row &row, int32_t column, Out (&pixel)[To::C]) const {
    constexpr int kTaps = 8;
    const In *frame = row.frame;
    int32_t index[SPACE];
    float weight[SPACE];
    if (!split(row, column, index, weight)) return;
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
      for (int d = 0; d < 3; d++)
#pragma unroll
        for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], weight[d]);
      pixel[c] = saturate<Out>(v[0]);
    }
  }
  DEVICE static int32_t clamped(int32_t i, int32_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

  DEVICE void read_in_row(const Memory &, const Row &row, int32_t, int32_t column, Out (&pixel)[To::C]) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = outside;
    if constexpr (SPACE == 3)
      read_volume(row, column, pixel);
    else
      read_image(row, column, pixel);
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Row row;
    begin_row(row, at);
    read_in_row(Memory(), row, 0, at[kPlaces - 1], pixel);
  }
};
