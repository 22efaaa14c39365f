// SPDX-License-Identifier: Apache-2.0
// Caffe's message Datum: a picture, encoded or raw, and a label.
#pragma once
#include "core/tensor.h"

struct CaffeArgs {
  int32_t has_image, has_label;
};
