// SPDX-License-Identifier: Apache-2.0
// A sample of a COCO data set: a file, and the objects in it.
#pragma once
#include "core/tensor.h"

struct CocoArgs {
  // Per sample: its annotations, as a range of `order`; the image's size and number.
  const int64_t *first, *count, *order;
  const int32_t *width, *height, *id;
  // Per annotation: boxes of 4 numbers, labels, and the ends of its polygons and masks in the arrays below.
  const float *box;
  const int32_t *label;
  const int64_t *polygon_end, *vertex_end;
  const float *vertex;
  const int64_t *rle_end;
  const int32_t *rle_size;
  const int64_t *run_end;
  const uint32_t *run;
  int32_t has_polygons;  // 1: polygon ranges count vertices, 2: coordinates
  int32_t has_masks, has_ids;
  int32_t ratio;  // divide vertices by the size of the image
};
