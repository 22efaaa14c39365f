// SPDX-License-Identifier: Apache-2.0
// Inputs one behind the other along an axis, an existing or a new one.
#pragma once
#include "core/tensor.h"

struct CatArgs {
  int32_t inputs;
  int32_t axis;  // what lies from this axis of an input on goes to the output in one piece
};

// Bytes of an input from `axis` on: one of the pieces that it is cut into.
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
