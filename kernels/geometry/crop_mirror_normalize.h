// SPDX-License-Identifier: Apache-2.0
// A window of a sample, its axes in another order, mirrored and normalised: out = (in - mean[c]) * scale[c].
#pragma once
#include "core/convert.h"

struct CropMirrorNormalizeArgs {
  // Per axis of the output: the axis of the input, and the index there of the first element. Indices decrease along a
  // mirrored axis. Elements outside of the input are filled.
  int32_t axis[kMaxDims];
  int64_t first[kMaxDims];
  // The mirrored axis of the output and its channel axis; -1: none.
  int32_t mirrored;
  int32_t channels;
  // Per channel. `fill` also has values for padding channels.
  const float *mean;
  const float *scale;
  const float *fill;
};

template <class Out, class In>
SHARED Out normalized(In x, float mean, float scale) {
  return saturate<Out>((to_float(x) - mean) * scale);
}
