// SPDX-License-Identifier: Apache-2.0
#include "geometry/warp.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "geometry/inside_rows.h"

namespace {

// Where a row of the output lies along one axis of the input: the lower of the two neighbours and the weight of the
// upper one.
CLONES void axis_row(int32_t *__restrict index, float *__restrict weight, int32_t first, int32_t n, float step,
                     float rest, int64_t extent, bool linear, bool clamp) {
  for (int32_t x = 0; x < n; x++)
    index[x] = warp_split(warp_coordinate(step, first + x, rest), extent, linear, clamp, weight + x);
}

template <class Out, int kDims, class In>
void warp_row(Out *out, const Source<kDims, In> &s, int64_t n, bool is_linear, Out outside_value) {
  const int hi = is_linear ? -1 : 0;
  int64_t touching = 0, untouched = n, inside, outside;
  s.run_within(n, 0, hi, &inside, &outside);
  if (s.fill && is_linear)
    s.run_within(n, hi, 0, &touching, &untouched);
  else if (s.fill)
    touching = inside, untouched = outside;
  if (inside == outside) inside = outside = untouched;
  auto filled = [&](int64_t begin, int64_t end) {
    std::fill(out + begin * s.channels, out + end * s.channels, outside_value);
  };
  auto looked_up = [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; x++) {
      Out *const o = out + x * s.channels;
      is_linear ? linear(o, s, x) : nearest(o, s, x);
    }
  };
  filled(0, touching);
  looked_up(touching, inside);
  if (!is_linear)
    nearest_inside_fastest(out, s, inside, outside);
  else
    linear_inside_fastest(out, s, inside, outside);
  looked_up(outside, untouched);
  filled(untouched, n);
}

template <int kDims, class Out, class In>
void warp(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  Source<kDims, In> s;
  const int ndim = in->ndim, first = ndim - 1 - kDims;  // axes before the first of space are those of a sequence
  int64_t size[3] = {1, 1, 1}, frames = 1, in_frame = 1;
  s.channels = (int)in->shape[ndim - 1];
  in_frame = s.channels;
  for (int d = 0; d < kDims; d++) {
    s.extent[d] = in->shape[ndim - 2 - d], size[d] = out->shape[ndim - 2 - d];
    s.step[d] = in_frame, in_frame *= s.extent[d];
  }
  for (int d = 0; d < first; d++) frames *= in->shape[d];
  if (out->volume() == 0) return;
  if (in_frame == 0 && a.clamp) fail("the input is empty and has no border to repeat; give a fill_value");
  const int64_t n = size[0];
  check_row(n, a.origin[0]);
  In *fill = scratch.array<In>(s.channels, 0);
  for (int c = 0; c < s.channels; c++) fill[c] = saturate<In>(a.fill);
  s.fill = a.clamp ? nullptr : fill;
  // Interpolation takes the fill for an element of the input, so that it has the input's type first.
  const Out outside_value = a.linear ? saturate<Out>(saturate<In>(a.fill)) : saturate<Out>(a.fill);
  int32_t *index = scratch.array<int32_t>(n * kDims, 1);
  float *weight = scratch.array<float>(n * kDims, 2);
  for (int d = 0; d < kDims; d++) s.index[d] = index + d * n, s.weight[d] = weight + d * n;
  Out *o = out->as<Out>();
  for (int64_t z = 0; z < size[2]; z++) {
    for (int64_t y = 0; y < size[1]; y++, o += n * s.channels) {
      for (int d = 0; d < kDims; d++) {
        const float *row = a.matrix + d * (kDims + 1);
        const float rest = warp_rest(row, kDims, (float)(y + a.origin[1]), (float)(z + a.origin[2]));
        axis_row(index + d * n, weight + d * n, (int32_t)a.origin[0], (int32_t)n, row[0], rest, s.extent[d], a.linear,
                 a.clamp);
      }
      for (int64_t f = 0; f < frames; f++) {
        s.data = in->as<In>() + f * in_frame;
        warp_row(o + f * size[2] * size[1] * n * s.channels, s, n, a.linear, outside_value);
      }
    }
  }
}

template <class Out, class In>
void warp_dims(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  a.dims == 2 ? warp<2, Out, In>(out, in, a, scratch) : warp<3, Out, In>(out, in, a, scratch);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const WarpArgs &a, Scratch &scratch) {
  for_types<uint8_t, int16_t, int32_t, float>(in->dtype, [&](auto i) {
    typedef decltype(i) In;
    if (out->dtype == FLOAT) return warp_dims<float, In>(out, in, a, scratch);
    if (out->dtype == in->dtype) return warp_dims<In, In>(out, in, a, scratch);
    if constexpr (IsFloat<In>::value)
      for_types<uint8_t, int16_t, int32_t>(out->dtype,
                                           [&](auto o) { warp_dims<decltype(o), In>(out, in, a, scratch); });
    else
      fail("[internal error] no kernel for these data types");
  });
}

EXPORT_KERNEL(warp, WarpArgs, run)
