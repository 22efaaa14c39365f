// SPDX-License-Identifier: Apache-2.0
// Finds the records of files without an index: where each begins, and its size including framing.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum RecordColumn { RECORD_OFFSET, RECORD_SIZE };

void scan_tfrecord(Object &object, Table &table);
void scan_recordio(Object &object, Table &table);
