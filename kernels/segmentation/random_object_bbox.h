// SPDX-License-Identifier: Apache-2.0
// The bounding box of a random blob of a mask, or of the whole mask. out: two corners, or a corner and the extents (one
// number per axis), or both corners in one; then the blob's label, if output_class.
#pragma once
#include "core/tensor.h"

struct RandomObjectBboxArgs {
  uint64_t key, position;
  uint32_t epoch;
  float foreground_prob;
  int32_t background;
  const int32_t *classes;  // null: all labels but the background
  const float *weights;    // of the classes; null: equal weights
  const int32_t *threshold;
  int32_t n_classes, has_classes, n_threshold;
  int32_t ignore_class, k_largest, format, output_class;
};

enum ObjectFormat : int32_t { kAnchorShape, kStartEnd, kBox };
