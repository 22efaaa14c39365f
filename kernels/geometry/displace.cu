// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: interp, border
#include "core/gpu.h"
#include "geometry/displace.h"
#include "geometry/gpu_sampling.h"

template <class To, class From, int INTERP, int BORDER>
struct Displace {
  typedef DisplaceArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  // Coordinates of rows and columns: where the channels are the last coordinate of their own, those before it.
  static constexpr bool kLast = !To::kUnit && To::kAxis == To::N - 1;
  static constexpr int kX = To::N - (kLast ? 2 : 1), kY = kX - 1;
  Place<From> in;
  Image<In> image;
  const Args *args;
  Displacing how;
  In fill[To::C];
  int32_t origin[2], kind;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    image.template begin<From, kX, kY>(in, from);
    args = &a, how = Displacing(a), kind = a.kind;
    origin[0] = (int32_t)a.origin[0], origin[1] = (int32_t)a.origin[1];
#pragma unroll
    for (int c = 0; c < To::C; c++) fill[c] = saturate<In>(displace_fill(a, c));
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    Image<In> from = image;
    In outside[To::C];
#pragma unroll
    for (int c = 0; c < To::C; c++) outside[c] = fill[c];
#pragma unroll
    for (int d = 0; d < To::N; d++)
      if (d != kX && d != kY) from.data += at[d] * in.step[d], outside[0] = saturate<In>(displace_fill(*args, at[d]));
    const int32_t column = at[kX] + origin[0], row = at[kY] + origin[1];
    float u, v, qx, qy;
    how.place(kind, (float)column, (float)row, &u, &v);
    if (kind == kJitter) {
      const int64_t p = row * args->extent[0] + column;
      uint32_t words[4];
      jitter_words(*args, (uint32_t)(p >> 2), words);
      const uint32_t w = p & 2 ? (p & 1 ? words[3] : words[2]) : (p & 1 ? words[1] : words[0]);
      u += jitter_step(w & 0xffff, args->range), v += jitter_step(w >> 16, args->range);
    }
    const int32_t x = warp_split(u, 0, INTERP != kNearest, false, &qx);
    const int32_t y = warp_split(v, 0, INTERP != kNearest, false, &qy);
    sample_between<INTERP, BORDER>(pixel, from, x, y, qx, qy, outside);
  }
};
