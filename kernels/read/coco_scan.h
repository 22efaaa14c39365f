// SPDX-License-Identifier: Apache-2.0
// Annotations of objects in COCO's format.
#pragma once
#include "read/storage.h"
#include "read/table.h"

// Of images, categories and annotations, as the file has them; `_END` columns say where those of each one end.
enum CocoColumn {
  COCO_IMAGE_ID,
  COCO_IMAGE_WIDTH,
  COCO_IMAGE_HEIGHT,
  COCO_IMAGE_NAME_END,
  COCO_IMAGE_NAMES,
  COCO_CATEGORY_ID,
  COCO_IMAGE,        // of annotations: the id of the image
  COCO_CATEGORY,     // the id of the category
  COCO_BOX,          // x, y, width, height
  COCO_POLYGON_END,  // numbers of polygons
  COCO_VERTEX_END,   // of polygons: numbers of vertices
  COCO_VERTEX,       // x, y
  COCO_RLE_END,      // of annotations: numbers of masks
  COCO_RLE_SIZE,     // of masks: height, width
  COCO_RUN_END,      // numbers of runs
  COCO_RUN,
};

struct CocoWish {
  float size_threshold;   // annotations whose box is narrower or lower are left out
  int32_t iscrowd;        // those marked so are taken
  int32_t polygons, rle;  // what to take of segmentations
};

void scan_coco(Object &input, const CocoWish &wish, Table &table);
