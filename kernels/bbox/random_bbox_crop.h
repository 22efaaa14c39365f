// SPDX-License-Identifier: Apache-2.0
// A random window of an image in which its boxes can be seen well enough. in: boxes (n, 2 dims) and, if has_labels, n
// labels. out: the window's anchor and shape (dims), the boxes that are kept, relative to the window; then, as asked
// for, their labels and their indices. What belongs to boxes has room for n and is shortened.
#pragma once
#include "core/tensor.h"

struct RandomBboxCropArgs {
  uint64_t key, position;
  uint32_t epoch;
  int32_t dims;
  int32_t start[3], end[3],
      sizes;                    // which number of a box is its start and its end (or, if `sizes`, extent) in x, y, z
  float scaling[2], aspect[6];  // ranges; aspect of x/y, x/z, y/z
  const float *thresholds;
  int32_t n_thresholds, no_crop, all_boxes, overlap;
  int64_t attempts, total_attempts;
  float prune;  // share of a box that must be inside for it to be kept; below 0: its centre must be
  float input[3], crop[3];
  int32_t has_crop, has_labels, has_indices;
};
