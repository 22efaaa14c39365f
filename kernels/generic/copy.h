// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

struct CopyArgs {
  int32_t streams;  // 1: around the caches, where the batch is larger than them or read late
};
