// SPDX-License-Identifier: Apache-2.0
// NeMo manifests: a JSON object on each line names a recording and its transcript.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum NemoColumn {
  NEMO_OFFSET,    // per entry: start in the recording in seconds; 0 if missing
  NEMO_DURATION,  // duration; -1 if missing
  NEMO_PATH_END,  // end offsets of paths
  NEMO_PATHS,
  NEMO_TEXT_END,
  NEMO_TEXTS,
  NEMO_BAD_LINE,  // per skipped line: its number, from 1 on,
  NEMO_WHY_END,   // and the reason
  NEMO_WHYS,
};

// Blank lines are skipped; other lines that are no entry are reported.
void scan_nemo(Object &input, Table &table);
