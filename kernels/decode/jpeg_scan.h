// SPDX-License-Identifier: Apache-2.0
// Input of the GPU's Huffman decoder: the CPU reads a JPEG file's headers and copies the scan without its byte
// stuffing; kernels/decode/jpeg_huffman.cu decodes it.
#pragma once
#include "decode/jpeg_coefficients.h"

constexpr int kScanTables = 4;  // two for DC, two for AC, the most that baseline files have

// `n_blocks` of 0: nothing for the GPU. A block of an MCU has a component and a pair of tables; `limit`, `offset` and
// `symbols` of a table as in CodeLengths of kernels/decode/huffman.h.
struct JpegScan {
  int64_t bits;
  int64_t likely_bits;  // those of the needed blocks and of the ones before, estimated
  int32_t n_blocks;     // of the whole picture, all components, in scan order
  int32_t begin, end;   // needed blocks: whole rows of MCUs
  int32_t mcu_blocks;   // of an MCU
  uint8_t component[16], dc[16], ac[16];
  uint32_t limit[72];
  int32_t offset[72];
  uint8_t symbols[1024];
};

// A batch's block of memory, on the host and, with equal content, on the GPU: for every picture a JpegRecord, a
// JpegScan, its rows of JpegHuffmanArgs and JpegPixelsArgs, and a status, at the offsets `records` etc., written by the
// threads; the rows of the outputs; then the scans, up to `size`.
struct JpegScanBatch {
  int64_t n;
  int64_t records, scans, huffman, pixels, statuses, rows;
  int64_t entropy_kernel, blocks_kernel, pixels_kernel;  // functions on the GPU
  // Of one batch: addresses of the block and of the launches' scratch, of `room` bytes; totals of the pictures: bytes
  // of scratch, pictures, most blocks of one; and whether the GPU was launched.
  int64_t size, host, device, scratch, room;
  int64_t wanted, taken, most_blocks;
  int64_t launched;
};

// `decode` is the address of the picture's DecodeArgs, `batch` that of the JpegScanBatch, `number` the picture's index
// in it; `data` the offset of the scan's bytes in the block, with room for the file's size and kScanSlack. Inputs: the
// file, the picture (only its shape is used).
struct JpegScanArgs {
  int64_t decode, batch, number, data;
};

// A block that begins at the end of a scan takes no more than 64 symbols of 31 bits; the GPU reads three words ahead.
constexpr int kScanSlack = 64 * 31 / 8 + 24;
