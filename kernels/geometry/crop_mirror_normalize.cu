// SPDX-License-Identifier: Apache-2.0
// form: places
// axes: axis
#include "core/gpu_chain.h"
#include "geometry/crop_mirror_normalize.h"
#include "geometry/truncated.h"

template <class To, class From>
struct CropMirrorNormalize : Local<To, From> {
  typedef CropMirrorNormalizeArgs Args;
  typedef typename To::T Out;
  static constexpr bool kFills = true, kByChannel = true;
  int32_t from[To::N], first[To::N], step[To::N], extent[To::N];  // from, first, step: per coordinate of the output
  float mean[To::C], scale[To::C];
  const float *means, *scales, *value;
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &in) {
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      const int axis = To::axis(d);
      from[d] = a.axis[axis], first[d] = (int32_t)a.first[axis], step[d] = a.mirrored == axis ? -1 : 1;
      extent[d] = (int32_t)From::extent(in, d);
    }
    means = a.mean, scales = a.scale, value = a.fill;
    if constexpr (To::kUnit) {
#pragma unroll
      for (int c = 0; c < To::C; c++) mean[c] = means[c], scale[c] = scales[c];
    }
  }
  DEVICE bool locate(int32_t (&at)[To::N]) const {
    int32_t in[To::N];
    bool inside = true;
#pragma unroll
    for (int e = 0; e < To::N; e++) {
      in[e] = 0;
#pragma unroll
      for (int d = 0; d < To::N; d++)
        if (from[d] == From::axis(e)) in[e] = first[d] + step[d] * at[d];
      inside = inside && (uint32_t)in[e] < (uint32_t)extent[e];
    }
#pragma unroll
    for (int e = 0; e < To::N; e++) at[e] = in[e];
    return inside;
  }
  DEVICE bool clamp(int32_t (&lo)[To::N], int32_t (&hi)[To::N]) const {
    bool any = true;
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      lo[d] = lo[d] < 0 ? 0 : lo[d];
      hi[d] = hi[d] >= extent[d] ? extent[d] - 1 : hi[d];
      any = any && lo[d] <= hi[d];
    }
    return any;
  }
  DEVICE void fill(Out (&out)[To::C], int channel) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = truncated<Out>(load(value + channel + c));
  }
  DEVICE void map(Out (&out)[To::C], const typename From::T (&in)[From::C], int channel) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      if (To::kUnit && c >= From::C)  // padding channels
        out[c] = truncated<Out>(load(value + c));
      else if constexpr (To::kUnit)
        out[c] = normalized<Out>(in[c < From::C ? c : 0], mean[c], scale[c]);
      else
        out[c] = normalized<Out>(in[c], load(means + channel), load(scales + channel));
    }
  }
};
