// SPDX-License-Identifier: Apache-2.0
// Caffe2's message TensorProtos: a picture, labels, more tensors and a box.
#pragma once
#include "core/tensor.h"

struct Caffe2Args {
  int32_t has_image;
  int32_t label_type;  // 0 one, 1 sparse, 2 dense, 3 sparse with weights, 4 none
  int32_t num_labels;
  int32_t additional;  // tensors after the labels
  int32_t has_bbox;
};
