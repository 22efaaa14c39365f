// SPDX-License-Identifier: Apache-2.0
// Finds the samples in a shard of MosaicML Streaming: the shard begins with their number, uint32, and the offsets of
// all of them and of the end, uint32. Shards may be compressed as a whole.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum MdsColumn { MDS_OFFSET, MDS_LENGTH };

void scan_mds(Object &shard, int64_t n_samples, Table &table);
