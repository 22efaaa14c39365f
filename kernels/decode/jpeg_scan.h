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
  int32_t mcu_blocks;  // of an MCU
  uint8_t component[16], dc[16], ac[16];
  uint32_t limit[72];
  int32_t offset[72];
  uint8_t symbols[1024];
};

// As JpegCoefficientsArgs. `data` is the address of room for the scan's bytes: as many as the file has, and
// kScanSlack more.
struct JpegScanArgs {
  int64_t y, x, window_height, window_width;
  int64_t data;
  int32_t format, height, width, orientation;
  int32_t gray;
};

constexpr int kScanSlack = 32;
