// SPDX-License-Identifier: Apache-2.0
// 64-byte aligned memory for batches, in size classes that are kept and handed out again.
#pragma once
#include "core/kernel.h"

EXPORT void *memory_take(int64_t bytes);  // null if out of memory
EXPORT void memory_give(void *p);
void memory_give_blocks(void *const *blocks, int64_t n);  // null ones are skipped
