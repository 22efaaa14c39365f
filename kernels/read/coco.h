// SPDX-License-Identifier: Apache-2.0
// A sample of a COCO data set: a file, and what is known of the objects in it.
#pragma once
#include "core/tensor.h"

struct CocoArgs {
  // Of samples: which annotations, through `order`; the image's size and number.
  const int64_t *first, *count, *order;
  const int32_t *width, *height, *id;
  // Of annotations: boxes of 4 numbers, labels, and where their polygons and masks end in what follows.
  const float *box;
  const int32_t *label;
  const int64_t *polygon_end, *vertex_end;
  const float *vertex;
  const int64_t *rle_end;
  const int32_t *rle_size;
  const int64_t *run_end;
  const uint32_t *run;
  int32_t has_polygons;  // 1: polygons count vertices, 2: they count coordinates
  int32_t has_masks, has_ids;
  int32_t ratio;  // vertices are divided by the size of the image
};
