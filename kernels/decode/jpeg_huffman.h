// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of baseline JPEG on the GPU: see jpeg_huffman.cu.
#pragma once
#include "decode/jpeg_scan.h"

// `record` and `scan` are the picture's, `data` its scan without byte stuffing, big-endian words of 4 bytes. `places`
// is the offset in the launch's scratch of the blocks' descriptions, followed by their words (see JpegRecord). `status`
// becomes 1 if the data is irregular; then all blocks are zeros.
struct JpegHuffmanArgs {
  const uint8_t *record;
  const uint8_t *scan;
  const uint8_t *data;
  const uint8_t *status;
  int64_t places;
};

constexpr int kEntropyThreads = 256;  // per picture

// How a scan's bits are divided: each thread has a piece, and room for its words.
constexpr int kLeastPiece = 256, kMostPiece = 8 * 4096;  // bits
constexpr int kWordsPerByte = 3;                         // files that need more are left to the CPU
constexpr int kWordsOfBlock = 128;                       // at most

SHARED int32_t piece_of(int32_t bits) {
  const int32_t piece = ((bits + kEntropyThreads - 1) / kEntropyThreads + 31) / 32 * 32;
  return piece < kLeastPiece ? kLeastPiece : piece < kMostPiece ? piece : kMostPiece;
}
SHARED int32_t words_of_piece(int32_t piece) { return piece / 8 * kWordsPerByte + kWordsOfBlock; }
