// SPDX-License-Identifier: Apache-2.0
// Object annotations in COCO's format.
#pragma once
#include "read/storage.h"
#include "read/table.h"

// Columns of images, categories and annotations in file order; `_END` columns hold the end of each one's entries.
enum CocoColumn {
  COCO_IMAGE_ID,
  COCO_IMAGE_WIDTH,
  COCO_IMAGE_HEIGHT,
  COCO_IMAGE_NAME_END,
  COCO_IMAGE_NAMES,
  COCO_CATEGORY_ID,
  COCO_IMAGE,        // per annotation: the id of the image
  COCO_CATEGORY,     // the id of the category
  COCO_BOX,          // x, y, width, height
  COCO_POLYGON_END,  // end index of its polygons
  COCO_VERTEX_END,   // per polygon: end index of its vertices
  COCO_VERTEX,       // x, y
  COCO_RLE_END,      // per annotation: end index of its masks
  COCO_RLE_SIZE,     // per mask: height, width
  COCO_RUN_END,      // end index of its runs
  COCO_RUN,
};

struct CocoWish {
  float size_threshold;   // skip annotations whose box is narrower or lower
  int32_t iscrowd;        // include annotations with this flag
  int32_t polygons, rle;  // which kinds of segmentation to include
};

void scan_coco(Object &input, const CocoWish &wish, Table &table);
