// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "color/grid_mask.h"
#include "core/gpu.h"

// A pixel is read where no square has it.
template <class To, class From>
struct GridMask {
  typedef GridMaskArgs Args;
  typedef typename To::T Out;
  Place<From> in;
  Args a;
  DEVICE void begin(const Args &args, const Tensor &, const Tensor &from) {
    in.begin(from);
    a = args;
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    int32_t y = 0, x = 0;
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      if (To::axis(d) == a.y_axis) y = at[d] + (int32_t)a.first_y;
      if (To::axis(d) == a.x_axis) x = at[d] + (int32_t)a.first_x;
    }
    const float row = (float)y;
    const bool keep = grid_keeps((float)x, row * a.cosine, row * a.sine, a);
    const Out *p = in.at(at);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = keep ? load(p + (To::kInterleaved ? c : c * in.channel)) : Out(0);
  }
};
