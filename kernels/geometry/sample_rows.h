// SPDX-License-Identifier: Apache-2.0
// Samples a row at any positions of an image: runs inside by fast loops, other elements one by one.
#pragma once
#include "geometry/source.h"

// Requires s.index and s.weight. `interp`: an Interpolation. T: uint8_t, uint16_t, int16_t, float.
template <class T>
void sample_row(T *out, const Source<2, T> &s, int64_t n, int interp);

namespace {

// An image as planes of pixels with interleaved channels: one plane, or one per channel.
template <class T>
struct Planes {
  Source<2, T> source;
  int count;
  int64_t in_plane, out_plane;  // elements

  // `planar`: HW or CHW; else HW or HWC.
  Planes(const Tensor *out, const Tensor *in, bool planar) {
    const int first = planar ? in->ndim - 2 : 0;
    source.channels = planar || in->ndim == 2 ? 1 : (int)in->shape[in->ndim - 1];
    count = planar && first ? (int)in->shape[0] : 1;
    source.extent[0] = in->shape[first + 1], source.extent[1] = in->shape[first];
    source.step[0] = source.channels, source.step[1] = source.extent[0] * source.channels;
    in_plane = source.step[1] * source.extent[1];
    out_plane = out->shape[first] * out->shape[first + 1] * source.channels;
  }
};

}  // namespace
