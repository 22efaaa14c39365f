// SPDX-License-Identifier: Apache-2.0
// Manifests of NeMo: a JSON object on each line says where a recording is, and what is said in it.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum NemoColumn {
  NEMO_OFFSET,    // of entries: where in the recording they begin, in seconds; 0 if it is not said
  NEMO_DURATION,  // and how long they are; -1 if it is not said
  NEMO_PATH_END,  // numbers of bytes of paths
  NEMO_PATHS,
  NEMO_TEXT_END,
  NEMO_TEXTS,
  NEMO_BAD_LINE,  // of lines that are left out: their numbers, from 1 on,
  NEMO_WHY_END,   // and why
  NEMO_WHYS,
};

// Blank lines are passed over, others that are no entry are told.
void scan_nemo(Object &input, Table &table);
