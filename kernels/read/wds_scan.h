// SPDX-License-Identifier: Apache-2.0
// Samples of a WebDataset: consecutive members of a tar archive with the same base name.
#pragma once
#include "read/storage.h"
#include "read/table.h"

// Per member: where its content begins, its size, where its name and its extension end in the text columns. Per sample:
// the number of the member after its last one.
enum WdsColumn { WDS_OFFSET, WDS_SIZE, WDS_NAME_END, WDS_EXT_END, WDS_SAMPLE_END, WDS_NAMES, WDS_EXTS };

void scan_wds_archive(Object &input, Table &table);
// An index file of version 1.0, 1.1 or 1.2; only the last has names.
void scan_wds_index(Object &input, Table &table);
