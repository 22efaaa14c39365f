// SPDX-License-Identifier: Apache-2.0
// Columns of a sample in a shard of MosaicML Streaming (MDS): first the sizes (uint32) of those columns that have no
// fixed one, then the columns, without anything between them.
#pragma once
#include "core/tensor.h"

enum MdsKind { MDS_BYTES, MDS_FIXED, MDS_ARRAY, MDS_PIL };

// An output: which column it is, and how that is encoded.
struct MdsOutput {
  int64_t column, kind;
  int64_t dtype;            // of an array; -1: its first byte says it
  int64_t ndim;             // of an array; -1: the bytes before its values say its shape
  int64_t shape[kMaxDims];  // otherwise
};

struct MdsArgs {
  const int64_t *sizes;    // of the columns, in bytes; -1: of any size
  const int64_t *outputs;  // MdsOutput
  int64_t n_columns, n_outputs;
};
