// SPDX-License-Identifier: Apache-2.0
// The content of the file named by the bytes of in[0]. out[0] is no memory for the content, which nobody knows the size
// of before, but a Tensor: its `data` becomes a block from the memory pool, its first extent the number of bytes. The
// block is the caller's.
#pragma once
#include "core/tensor.h"

struct WholeFileArgs {
  int32_t direct;  // past the system's cache, where the file system can do that
};
