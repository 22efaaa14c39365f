// SPDX-License-Identifier: Apache-2.0
// A random window of an image that shows its boxes well enough. in: boxes (n, 2 * dims) and, if has_labels, labels of
// n boxes. out: anchor and shape (dims) of the window; the kept boxes, relative to the window; optionally their labels
// and their indices. The outputs per box are allocated for n and shortened.
#pragma once
#include "core/tensor.h"

struct RandomBboxCropArgs {
  uint64_t key, position;
  uint32_t epoch;
  int32_t dims;
  int32_t start[3], end[3],
      sizes;                    // indices of a box's start and end (if `sizes`: extent) in x, y, z
  float scaling[2], aspect[6];  // ranges (minimum, maximum); aspect of x/y, x/z, y/z
  const float *thresholds;
  int32_t n_thresholds, no_crop, all_boxes, overlap;
  int64_t attempts, total_attempts;
  float prune;  // minimum share of a box inside the window to keep it; if negative, its centre must be inside
  float input[3], crop[3];
  int32_t has_crop, has_labels, has_indices;
};
