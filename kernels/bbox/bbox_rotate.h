// SPDX-License-Identifier: Apache-2.0
// Boxes where a rotation of their image takes them. in: boxes (n, 4) and, if has_labels, labels. out: the boxes that
// are kept, in the beginning of as many rows, how many they are, and the labels that belong to them.
#pragma once
#include "core/tensor.h"

struct BboxRotateArgs {
  double cosine, sine;
  double extent[2], canvas[2];  // width and height of the input and the output
  double threshold;
  int32_t sizes, normalized, mode, has_labels;
};

enum RotatedBox : int32_t { kExpand, kHalfway, kFixed };
