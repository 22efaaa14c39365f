// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of baseline JPEG on the GPU: see jpeg_huffman.cu.
#pragma once
#include "decode/jpeg_scan.h"

// `record` and `scan` are the picture's, `data` its scan without byte stuffing, big-endian words of 4 bytes, `words`
// where the decoded words go: room for `most_words`. The places of its blocks lie before them. `status` becomes 1 where
// the data is irregular; then the places are zeros.
struct JpegHuffmanArgs {
  const uint8_t *record;
  const uint8_t *scan;
  const uint8_t *data;
  const uint8_t *status;
  int64_t most_words;
};
