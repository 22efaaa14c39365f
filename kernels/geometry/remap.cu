// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: interp
#include "core/gpu.h"
#include "geometry/gpu_sampling.h"
#include "geometry/remap.h"

template <class To, class From, int INTERP>
struct Remap : GatherBase {
  typedef RemapArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kInputs = 3;
  static constexpr int kX = To::kUnit ? To::N - 1 : To::N - 2, kY = kX - 1;
  struct Row {
    Image<From> image;
    const float *maps[2];
  };
  static constexpr bool kAlways = INTERP == kNearest;
  typedef Sample<INTERP, kAlways ? kBorderConstant : kBorderReplicate, From> Fetched;
  static constexpr int kAtOnce = INTERP == kNearest ? kNearestAtOnce : kLinearAtOnce;
  Place<From> in;
  Image<From> image;
  const float *maps[2];
  int32_t map_width;
  float shift;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from, const Tensor &across, const Tensor &down) {
    in.begin(from);
    image.template begin<kX, kY>(in, from);
    map_width = (int32_t)across.shape[1];
    const int64_t at = a.origin[1] * (int64_t)map_width + a.origin[0];
    maps[0] = across.as<float>() + at, maps[1] = down.as<float>() + at;
    shift = a.shift;
  }
  DEVICE void begin_row(Row &row, const int32_t (&at)[To::N]) const {
    row.image = image;
    row.image.data = in.data + (To::kUnit ? 0 : at[To::N - 1]);
#pragma unroll
    for (int d = 0; d < 2; d++) row.maps[d] = maps[d] + (int64_t)at[kY] * map_width;
  }
  DEVICE void begin_read_anywhere(const Row &row, int32_t column, Fetched &fetched) const {
    float qx, qy;
    const float first = remap_first(INTERP, shift);
    const int32_t width = row.image.width, height = row.image.height;
    const int32_t x = remap_split(load(row.maps[0] + column), shift, first, remap_end(INTERP, width), width, &qx);
    const int32_t y = remap_split(load(row.maps[1] + column), shift, first, remap_end(INTERP, height), height, &qy);
    fetched.begin(row.image, x, y, qx, qy);
  }
  DEVICE void begin_read(const Memory &, const Row &row, int32_t, int32_t column, Fetched &fetched) const {
    begin_read_anywhere(row, column, fetched);
  }
  DEVICE void end_read(const Row &row, const Fetched &fetched, Out (&pixel)[To::C]) const {
    const In fill[To::C] = {};
    const Out outside[To::C] = {};
    if (!kAlways && (fetched.x | fetched.y) < 0) {
#pragma unroll
      for (int c = 0; c < To::C; c++) pixel[c] = outside[c];
      return;
    }
    fetched.end(pixel, row.image, outside, fill);
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Row row;
    Fetched fetched;
    begin_row(row, at);
    begin_read_anywhere(row, at[kX], fetched);
    end_read(row, fetched, pixel);
  }
};
