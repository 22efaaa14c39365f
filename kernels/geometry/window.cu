// SPDX-License-Identifier: Apache-2.0
// form: places
// constants: border
// begin: start - origin
// border: border
#include "core/gpu_chain.h"
#include "geometry/gpu_window.h"
#include "geometry/truncated.h"
#include "geometry/window.h"

template <class To, class From, int BORDER>
struct Window : Local<To, From> {
  typedef WindowArgs Args;
  typedef typename To::T Out;
  static constexpr bool kFills = BORDER == BORDER_CONSTANT;
  int32_t start[To::N], extent[To::N], origin[To::N];
  bool per_channel;
  const float *value;
  DEVICE void begin(const Args &a, const Tensor &out, const Tensor &) {
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      const int axis = To::axis(d);
      start[d] = (int32_t)a.start[axis], origin[d] = (int32_t)a.origin[axis];
      extent[d] = out.ndim ? (int32_t)a.extent[axis] : 1;
    }
    per_channel = a.channels >= 0, value = a.fill;
  }
  DEVICE bool locate(int32_t (&at)[To::N]) const {
    bool inside = true;
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      int32_t i = start[d] + at[d];
      if ((uint32_t)i >= (uint32_t)extent[d]) {
        if (BORDER == BORDER_CONSTANT)
          inside = false;
        else
          i = (int32_t)border_index(i, extent[d], BORDER);
      }
      at[d] = i - origin[d];
    }
    return inside;
  }
  DEVICE bool is_straight() const { return BORDER == BORDER_CONSTANT; }
  DEVICE bool clamp(int32_t (&lo)[To::N], int32_t (&hi)[To::N]) const {
    bool any = true;
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      lo[d] = lo[d] < -origin[d] ? -origin[d] : lo[d];
      hi[d] = hi[d] >= extent[d] - origin[d] ? extent[d] - origin[d] - 1 : hi[d];
      any = any && lo[d] <= hi[d];
    }
    return any;
  }
  DEVICE void fill(Out (&out)[To::C], int channel) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = truncated<Out>(load(value + (per_channel ? channel + c : 0)));
  }
  DEVICE void map(Out (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      if constexpr (DTypeOf<Out>::value == DTypeOf<typename From::T>::value)
        out[c] = in[c];
      else
        out[c] = truncated<Out>(in[c]);
    }
  }
};
