// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: interp
#include "core/gpu.h"
#include "geometry/gpu_sampling.h"
#include "geometry/remap.h"

template <class To, class From, int INTERP>
struct Remap {
  typedef RemapArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kInputs = 3;
  static constexpr int kX = To::kUnit ? To::N - 1 : To::N - 2, kY = kX - 1;
  Place<From> in;
  Image<In> image;
  const float *maps[2];
  int32_t map_width;
  float shift;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from, const Tensor &across, const Tensor &down) {
    in.begin(from);
    image.template begin<From, kX, kY>(in, from);
    map_width = (int32_t)across.shape[1];
    const int64_t at = a.origin[1] * (int64_t)map_width + a.origin[0];
    maps[0] = across.as<float>() + at, maps[1] = down.as<float>() + at;
    shift = a.shift;
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Image<In> from = image;
    from.data = in.data + (To::kUnit ? 0 : at[To::N - 1]);
    const int64_t i = (int64_t)at[kY] * map_width + at[kX];
    float qx, qy;
    const int32_t x = remap_split(load(maps[0] + i), shift, &qx), y = remap_split(load(maps[1] + i), shift, &qy);
    const In fill[To::C] = {};
    sample_between<INTERP, kBorderConstant>(pixel, from, x, y, qx, qy, fill);
  }
};
