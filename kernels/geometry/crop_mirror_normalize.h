// SPDX-License-Identifier: Apache-2.0
// A window of a sample, its axes in another order, mirrored and normalised: out = (in - mean[c]) * scale[c].
#pragma once
#include "core/convert.h"

struct CropMirrorNormalizeArgs {
  // Per axis of the output: the axis of the input it comes from, and which index of it the first element comes from.
  // A mirrored axis goes down from there. What falls outside of the input is filled.
  int32_t axis[kMaxDims];
  int64_t first[kMaxDims];
  // The mirrored axis of the output and the axis of the output that counts channels; -1: none.
  int32_t mirrored;
  int32_t channels;
  // Per channel; `fill` also for the channels that the output has more than the input.
  const float *mean;
  const float *scale;
  const float *fill;
};

template <class Out, class In>
SHARED Out normalized(In x, float mean, float scale) {
  return saturate<Out>((to_float(x) - mean) * scale);
}
