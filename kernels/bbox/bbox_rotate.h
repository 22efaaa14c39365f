// SPDX-License-Identifier: Apache-2.0
// Boxes around the rotated content of their image. in: boxes (n, 4) and, if has_labels, labels. out: the boxes that are
// kept and their labels; allocated for n and shortened.
#pragma once
#include "core/tensor.h"

struct BboxRotateArgs {
  double threshold;
  float angle;        // degrees, counter-clockwise
  int32_t extent[2];  // width and height of the input
  float size[2];      // height and width of the output if `canvas` is kGiven
  int32_t canvas, sizes, normalized, mode, has_labels;
};

enum Canvas : int32_t { kEnclosing, kSame, kGiven };
enum RotatedBox : int32_t { kExpand, kHalfway, kFixed };
