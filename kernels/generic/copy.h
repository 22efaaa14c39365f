// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

struct CopyArgs {
  int32_t streams;  // 1: non-temporal stores, for batches that are larger than the caches or read much later
};
