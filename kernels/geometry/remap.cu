// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "core/gpu.h"
#include "geometry/gpu_sampling.h"
#include "geometry/remap.h"

template <class To, class From>
struct Remap {
  typedef RemapArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kInputs = 3;
  static constexpr int kX = To::kUnit ? To::N - 1 : To::N - 2, kY = kX - 1;
  Place<From> in;
  Image<In> image;
  const float *maps[2];
  int64_t map_width;
  float shift;
  int interp;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from, const Tensor &across, const Tensor &down) {
    in.begin(from);
    image.channel = To::kUnit ? in.channel : 0;
    image.across = in.step[kX], image.down = in.step[kY];
    image.width = (int32_t)From::extent(from, kX), image.height = (int32_t)From::extent(from, kY);
    map_width = across.shape[1];
    const int64_t at = a.origin[1] * map_width + a.origin[0];
    maps[0] = across.as<float>() + at, maps[1] = down.as<float>() + at;
    shift = a.shift, interp = a.interp;
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Image<In> from = image;
    from.data = in.data + (To::kUnit ? 0 : at[To::N - 1]);
    const int64_t i = at[kY] * map_width + at[kX];
    float qx, qy, value[To::C];
    const int32_t x = remap_split(load(maps[0] + i), shift, &qx), y = remap_split(load(maps[1] + i), shift, &qy);
    const float fill[To::C] = {};
    sample_between<kLanczos3>(value, from, x, y, qx, qy, interp, kBorderConstant, fill);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = saturate<Out>(value[c]);
  }
};
