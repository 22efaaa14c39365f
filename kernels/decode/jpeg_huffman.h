// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of baseline JPEG on the GPU: see jpeg_huffman.cu.
#pragma once
#include "decode/jpeg_scan.h"

// `record` and `scan` are the picture's, `data` its scan without byte stuffing, big-endian words of 4 bytes. `places`
// is where in the launch's scratch the places of its blocks go, with room for `most_words` words behind them. `status`
// becomes 1 where the data is irregular; then the places are zeros.
struct JpegHuffmanArgs {
  const uint8_t *record;
  const uint8_t *scan;
  const uint8_t *data;
  const uint8_t *status;
  int64_t places, most_words;
};
