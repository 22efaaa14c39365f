// SPDX-License-Identifier: Apache-2.0
// Reads the content of the file named by the bytes of in[0]. As its size is unknown before, out[0] is a Tensor instead
// of memory: its `data` becomes a block from the memory pool, its first extent the number of bytes. The block belongs
// to the caller.
#pragma once
#include "core/tensor.h"

struct WholeFileArgs {
  int32_t direct;  // bypass the system's cache if the file system supports it
};
