// SPDX-License-Identifier: Apache-2.0
// Compressed chunks of a sample, each a block of LZ4, become slices of the output along its first axis. What a chunk
// lacks of its slice is zeros.
#pragma once
#include "decode/lz4.h"

// `offsets` and `sizes` of the chunks in the input, which lie within it. On the GPU the byte at `status` becomes 1 if a
// chunk is damaged, unless it is 0.
struct Lz4ChunksArgs {
  const int64_t *offsets;
  const int64_t *sizes;
  int64_t chunks, status;
};
