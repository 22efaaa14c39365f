// SPDX-License-Identifier: Apache-2.0
// Selects parts of a sample along its first axis, in any order.
#pragma once
#include "core/tensor.h"

struct FramesArgs {
  const int32_t *order;  // input frame of each output frame
  int32_t count;         // number of output frames
};

// Bytes of a frame.
SHARED int64_t frame_bytes(const Tensor &in) {
  int64_t n = item_size(in.dtype);
  for (int d = 1; d < in.ndim; d++) n *= in.shape[d];
  return n;
}
