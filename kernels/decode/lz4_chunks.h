// SPDX-License-Identifier: Apache-2.0
// Decompresses chunks of a sample, each an LZ4 block, into slices of the output along its first axis. A slice whose
// chunk is too short is filled with zeros.
#pragma once
#include "decode/lz4.h"

// `offsets` and `sizes` of the chunks, which lie within the input. On the GPU the byte at `status`, unless null,
// becomes 1 if a chunk is damaged.
struct Lz4ChunksArgs {
  const int64_t *offsets;
  const int64_t *sizes;
  int64_t chunks, status;
};
