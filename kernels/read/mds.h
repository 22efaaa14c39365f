// SPDX-License-Identifier: Apache-2.0
// Columns of a sample in a shard of MosaicML Streaming (MDS): first the sizes (uint32) of the columns without a fixed
// size, then the columns, contiguously.
#pragma once
#include "core/tensor.h"

enum MdsKind { MDS_BYTES, MDS_FIXED, MDS_ARRAY, MDS_PIL };

// An output: its column, and the column's encoding.
struct MdsOutput {
  int64_t column, kind;
  int64_t dtype;            // of an array; -1: given by its first byte
  int64_t ndim;             // of an array; -1: its shape is stored before its values
  int64_t shape[kMaxDims];  // if ndim is not -1
};

struct MdsArgs {
  const int64_t *sizes;    // of the columns, in bytes; -1 if variable
  const int64_t *outputs;  // MdsOutput
  int64_t n_columns, n_outputs;
};
