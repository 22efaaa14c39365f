// SPDX-License-Identifier: Apache-2.0
// Joins inputs along an axis, an existing or a new one.
#pragma once
#include "core/tensor.h"

struct CatArgs {
  int32_t inputs;
  int32_t axis;  // an input's elements from this axis on are contiguous in the output
};

// Bytes of a piece of an input: all from `axis` on.
SHARED int64_t cat_piece(const Tensor &t, int axis) {
  int64_t n = item_size(t.dtype);
  for (int d = axis; d < t.ndim; d++) n *= t.shape[d];
  return n;
}

// Pieces per input.
SHARED int64_t cat_pieces(const Tensor &t, int axis) {
  int64_t n = 1;
  for (int d = 0; d < axis; d++) n *= t.shape[d];
  return n;
}
