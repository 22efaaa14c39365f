// SPDX-License-Identifier: Apache-2.0
// form: gather
// constants: linear, clamp, dims
#include "core/gpu.h"
#include "geometry/gpu_sampling.h"
#include "geometry/warp.h"

template <class To, class From, int LINEAR, int CLAMP, int SPACE>
struct Warp {
  typedef WarpArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kPlaces = To::kUnit ? To::N : To::N - 1;  // coordinates that are not the channel's
  static constexpr int kMost = kPlaces < 3 ? kPlaces : 3;
  Place<From> in;
  float matrix[SPACE * (SPACE + 1)];
  int32_t origin[3], extent[3];
  Image<In> image;
  In fill;
  Out outside;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    image.template begin<From, kPlaces - 1, kPlaces - 2>(in, from);
#pragma unroll
    for (int i = 0; i < SPACE * (SPACE + 1); i++) matrix[i] = a.matrix[i];
#pragma unroll
    for (int d = 0; d < kMost; d++)
      origin[d] = (int32_t)a.origin[d], extent[d] = (int32_t)From::extent(from, kPlaces - 1 - d);
    // Interpolation takes the fill for an element of the input, so that it has the input's type first.
    fill = saturate<In>(a.fill);
    outside = LINEAR ? saturate<Out>(fill) : saturate<Out>(a.fill);
  }

  // Where along the axes of space the place is, x first; false: no element of the input takes part.
  template <int DIMS>
  DEVICE bool split(const int32_t (&at)[To::N], int32_t (&index)[DIMS], float (&weight)[DIMS]) const {
    const float y = (float)(at[kPlaces - 2] + origin[1]);
    const float z = DIMS == 3 ? (float)(at[kPlaces - DIMS] + origin[DIMS - 1]) : 0;
    bool any = true;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
      const float *row = matrix + d * (DIMS + 1);
      const float c = warp_coordinate(row[0], at[kPlaces - 1] + origin[0], warp_rest(row, DIMS, y, z));
      index[d] = warp_split(c, extent[d], LINEAR, CLAMP, weight + d);
      any = any && extent[d] > 0 && (CLAMP || (index[d] >= (LINEAR ? -1 : 0) && index[d] < extent[d]));
    }
    return any;
  }
  DEVICE void read_image(const int32_t (&at)[To::N], const In *frame, Out (&pixel)[To::C]) const {
    int32_t index[2];
    float weight[2];
    if (!split<2>(at, index, weight)) return;
    Image<In> from = image;
    from.data = frame;
    In fills[To::C];
#pragma unroll
    for (int c = 0; c < To::C; c++) fills[c] = fill;
    sample_between<LINEAR ? kLinear : kNearest, CLAMP ? kBorderReplicate : kBorderConstant>(
        pixel, from, index[0], index[1], weight[0], weight[1], fills);
  }
  DEVICE void read_volume(const int32_t (&at)[To::N], const In *frame, Out (&pixel)[To::C]) const {
    constexpr int kTaps = 8;
    int32_t index[3];
    float weight[3];
    if (!split<3>(at, index, weight)) return;
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

  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = outside;
    const In *frame = in.data;
#pragma unroll
    for (int d = 0; d < From::N; d++)
      if (d < kPlaces - SPACE || d >= kPlaces) frame += at[d] * in.step[d];
    if constexpr (SPACE == 3)
      read_volume(at, frame, pixel);
    else
      read_image(at, frame, pixel);
  }
};
