// SPDX-License-Identifier: Apache-2.0
// form: gather
#include "core/gpu.h"
#include "geometry/warp.h"

template <class To, class From>
struct Warp {
  typedef WarpArgs Args;
  typedef typename From::T In;
  typedef typename To::T Out;
  static constexpr int kPlaces = To::kUnit ? To::N : To::N - 1;  // coordinates that are not the channel's
  static constexpr int kMost = kPlaces < 3 ? kPlaces : 3;
  Place<From> in;
  float matrix[12];
  int32_t origin[3], extent[3];
  bool clamp, linear;
  int dims;
  In fill;
  Out outside;

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    dims = a.dims, linear = a.linear, clamp = a.clamp && from.volume() > 0;
#pragma unroll
    for (int i = 0; i < 12; i++) matrix[i] = a.matrix[i];
#pragma unroll
    for (int d = 0; d < kMost; d++)
      origin[d] = (int32_t)a.origin[d], extent[d] = (int32_t)From::extent(from, kPlaces - 1 - d);
    // Interpolation takes the fill for an element of the input, so that it has the input's type first.
    fill = saturate<In>(a.fill);
    outside = a.linear ? saturate<Out>(fill) : saturate<Out>(a.fill);
  }

  template <int DIMS>
  DEVICE void read_dims(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    constexpr int kTaps = 1 << DIMS;
    int32_t index[DIMS];
    float weight[DIMS];
    const float y = (float)(at[kPlaces - 2] + origin[1]);
    const float z = DIMS == 3 ? (float)(at[kPlaces - DIMS] + origin[DIMS - 1]) : 0;
    bool any = true, all = true;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
      const float *row = matrix + d * (DIMS + 1);
      const float c = warp_coordinate(row[0], at[kPlaces - 1] + origin[0], warp_rest(row, DIMS, y, z));
      index[d] = warp_split(c, extent[d], linear, clamp, weight + d);
      any = any && index[d] >= (linear ? -1 : 0) && index[d] < extent[d];
      all = all && index[d] >= 0 && index[d] < extent[d] - (linear ? 1 : 0);
    }
    if (!clamp && !any) {
#pragma unroll
      for (int c = 0; c < To::C; c++) pixel[c] = outside;
      return;
    }
    const In *base = in.data;
#pragma unroll
    for (int d = 0; d < From::N; d++)
      if (d < kPlaces - DIMS || d >= kPlaces) base += at[d] * in.step[d];
    if (!linear) {
#pragma unroll
      for (int d = 0; d < DIMS; d++) base += clamped(index[d], extent[d]) * in.step[kPlaces - 1 - d];
#pragma unroll
      for (int c = 0; c < To::C; c++) pixel[c] = saturate<Out>(load(base + c * in.channel));
      return;
    }
    if (all) {  // what no neighbour is missing of needs no questions
      int64_t step[DIMS];
#pragma unroll
      for (int d = 0; d < DIMS; d++) {
        step[d] = in.step[kPlaces - 1 - d];
        base += index[d] * step[d];
      }
#pragma unroll
      for (int c = 0; c < To::C; c++) {
        const In *from = base + (From::kInterleaved ? c : c * in.channel);
        float v[kTaps];
#pragma unroll
        for (int t = 0; t < kTaps; t++) {
          const In *p = from;
#pragma unroll
          for (int d = 0; d < DIMS; d++)
            if (t >> d & 1) p += step[d];
          v[t] = to_float(load(p));
        }
        pixel[c] = mixed<DIMS>(v, weight);
      }
      return;
    }
    const In *tap[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; t++) {
      tap[t] = base;
      bool inside = true;
#pragma unroll
      for (int d = 0; d < DIMS; d++) {
        const int32_t i = index[d] + (t >> d & 1);
        inside = inside && i >= 0 && i < extent[d];
        tap[t] += clamped(i, extent[d]) * in.step[kPlaces - 1 - d];
      }
      if (!clamp && !inside) tap[t] = nullptr;
    }
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      float v[kTaps];
#pragma unroll
      for (int t = 0; t < kTaps; t++) v[t] = (float)(tap[t] ? load(tap[t] + c * in.channel) : fill);
      pixel[c] = mixed<DIMS>(v, weight);
    }
  }
  template <int DIMS>
  DEVICE static Out mixed(float (&v)[1 << DIMS], const float (&weight)[DIMS]) {
#pragma unroll
    for (int d = 0; d < DIMS; d++)
#pragma unroll
      for (int t = 0; t < 1 << (DIMS - d - 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], weight[d]);
    return saturate<Out>(v[0]);
  }
  DEVICE static int32_t clamped(int32_t i, int32_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

  DEVICE void read(const int32_t (&at)[To::N], Out (&pixel)[To::C]) const {
    if constexpr (kMost >= 3)
      if (dims == 3) return read_dims<3>(at, pixel);
    read_dims<2>(at, pixel);
  }
};
