// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "core/gpu.h"
#include "geometry/displace.h"
#include "geometry/gpu_sampling.h"

template <class To, class From>
struct Displace {
  typedef DisplaceArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  // Coordinates of rows and columns: where the channels are the last coordinate of their own, those before it.
  static constexpr bool kLast = !To::kUnit && To::kAxis == To::N - 1;
  static constexpr int kX = To::N - (kLast ? 2 : 1), kY = kX - 1;
  Place<From> in;
  const Args *args;
  Image<In> image;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    args = &a;
    image.channel = To::kUnit ? in.channel : 0;
    image.across = in.step[kX], image.down = in.step[kY];
    image.width = (int32_t)From::extent(from, kX), image.height = (int32_t)From::extent(from, kY);
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    const Args &a = *args;
    Image<In> from = image;
    from.data = in.data;
    int channel = 0;
#pragma unroll
    for (int d = 0; d < To::N; d++)
      if (d != kX && d != kY) from.data += at[d] * in.step[d], channel = at[d];
    const int64_t x = at[kX] + a.origin[0], y = at[kY] + a.origin[1];
    float u, v, fill[To::C], value[To::C];
    displace(a, x, y, &u, &v);
    if (a.kind == kJitter) {
      const int64_t p = y * a.extent[0] + x;
      uint32_t words[4];
      jitter_words(a, (uint32_t)(p >> 2), words);
      const uint32_t w = words[p & 3];
      u += jitter_step(w & 0xffff, a.range), v += jitter_step(w >> 16, a.range);
    }
#pragma unroll
    for (int c = 0; c < To::C; c++) fill[c] = (float)saturate<In>(displace_fill(a, channel + c));
    sample(value, from, u, v, a.interp, a.border, fill);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = saturate<Out>(value[c]);
  }
};
