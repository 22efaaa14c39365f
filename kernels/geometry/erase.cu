// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "core/gpu.h"
#include "geometry/erase.h"
#include "geometry/truncated.h"

// A pixel is read where no region has it.
template <class To, class From>
struct Erase {
  typedef EraseArgs Args;
  typedef typename To::T Out;
  Place<From> in;
  const int64_t *first, *behind;
  const float *value;
  int32_t regions, ndim;
  bool per_channel;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    first = a.begin, behind = a.end, value = a.fill, regions = a.regions, ndim = from.ndim;
    per_channel = a.channels >= 0;
  }
  DEVICE bool inside(int region, int axis, int64_t i) const {
    const int64_t k = region * ndim + axis;
    return i >= load(first + k) && i < load(behind + k);
  }
  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    const Out *p = in.at(at);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = load(p + (To::kInterleaved ? c : c * in.channel));
    for (int r = 0; r < regions; r++) {
      bool filled = true;
#pragma unroll
      for (int d = 0; d < To::N; d++)
        if (To::axis(d) < ndim) filled = filled && inside(r, To::axis(d), at[d]);
      if (!filled) continue;
#pragma unroll
      for (int c = 0; c < To::C; c++) {
        if (To::kUnit && !inside(r, To::kAxis, c)) continue;
        const int channel = To::kUnit        ? c
                            : To::kAxis >= 0 ? at[To::kAxis < To::N && To::kAxis >= 0 ? To::kAxis : 0]
                                             : 0;
        pixel[c] = truncated<Out>(load(value + (per_channel ? channel : 0)));
      }
    }
  }
};
