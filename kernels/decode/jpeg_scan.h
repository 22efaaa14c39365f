// SPDX-License-Identifier: Apache-2.0
// What the GPU's Huffman decoder needs of a JPEG file: the CPU reads the headers and copies the scan without its byte
// stuffing; kernels/decode/jpeg_huffman.cu decodes it.
#pragma once
#include "decode/jpeg_coefficients.h"

constexpr int kScanTables = 4;  // two for DC, two for AC: what baseline files may have

// `n_blocks` of 0: nothing for the GPU. A block of an MCU has a component and a pair of tables; `limit`, `offset` and
// `symbols` of a table as in CodeLengths of kernels/decode/huffman.h.
struct JpegScan {
  int64_t bits;
  int32_t n_blocks;    // of the whole picture, all components, as they follow each other in the scan
  int32_t begin, end;  // those that are needed: rows of MCUs
  int32_t mcu_blocks;  // of an MCU
  uint8_t component[16], dc[16], ac[16];
  uint32_t limit[72];
  int32_t offset[72];
  uint8_t symbols[1024];
};

// A batch's block of memory, on the host and, with the same content, on the GPU: for every picture a JpegRecord, a
// JpegScan, its rows of JpegHuffmanArgs and JpegPixelsArgs, and a status, which begin at `records`.. and are written by
// the threads; the rows of the outputs; then the scans, up to `size`.
struct JpegScanBatch {
  int64_t n;
  int64_t records, scans, huffman, pixels, statuses, rows;
  int64_t entropy_kernel, blocks_kernel, pixels_kernel;  // functions of the GPU
  // Of one batch: addresses of the block and of the launches' scratch, of which there are `room` bytes; what the
  // pictures add up to, in bytes of scratch, pictures and blocks; and whether the GPU was asked to decode them.
  int64_t size, host, device, scratch, room;
  int64_t wanted, taken, most_blocks;
  int64_t launched;
};

// `decode` is the address of the picture's DecodeArgs, `batch` that of the JpegScanBatch, `number` the picture's place
// in it; `data` where in the block the scan's bytes go: room for as many as the file has, and kScanSlack more. Inputs:
// the file, the picture (of which the shape is read).
struct JpegScanArgs {
  int64_t decode, batch, number, data;
};

// A block that begins at the end of a scan takes no more than 64 symbols of 31 bits; the GPU reads three words ahead.
constexpr int kScanSlack = 64 * 31 / 8 + 24;
