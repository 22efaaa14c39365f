// SPDX-License-Identifier: Apache-2.0
// Huffman decoding of baseline JPEG, which is most of the time of a decode, faster than libjpeg's own: the scan is
// freed of its byte stuffing first, so that 8 bytes are taken at once, and one table look-up gives run, value and
// length of most symbols.
//
// It takes only flawless data. Whatever is irregular is left to libjpeg, whose verdict (warning, error or pixels) then
// holds.
#pragma once
#include "decode/image.h"
#include "decode/libjpeg.h"

constexpr int kLookBits = 10;

// The codes of one DHT segment (ITU-T T.81, F.2.2.3).
struct HuffmanTable {
  // By the next kLookBits bits: length of code and extra bits together (0: longer than that), run of zeros (64: end of
  // block), value.
  struct Entry {
    uint8_t length, run;
    int16_t value;
  };
  Entry fast[1 << kLookBits];
  // By the next kLookBits bits: length of the code << 8 | symbol; 0: longer.
  uint16_t codes[1 << kLookBits];
  // Of each length the first code above, left-aligned in 16 bits, and what to add to a code for its place in `symbols`.
  uint32_t limit[18];
  int32_t offset[17];
  uint8_t symbols[256];
};

struct HuffmanDecoder {
  const uint8_t *next, *end;  // of the restart interval, without stuffing
  uint64_t window;            // the next bits, first at the top
  int held;                   // how many of them are valid
  int intervals_left, mcus_to_restart;
  const uint32_t *interval_ends;  // this one's end and those that follow, as offsets
  int16_t last_dc[4];
  int n_blocks;
  struct Block {
    const HuffmanTable *dc, *ac;
    int component;
    bool keep_dc, keep_ac;
  } blocks[D_MAX_BLOCKS_IN_MCU];
  HuffmanTable tables[8];  // 0..3: DC, 4..7: AC
};

// Prepares `h` for the only scan of a baseline file, from the byte libjpeg has come to. False: leave it to libjpeg.
bool begin_scan(HuffmanDecoder &h, const jpeg_decompress_struct &d, Bytes in, Scratch &scratch);

// Decodes the next MCU into zeroed blocks, or over it if there are none. False: irregular data.
bool decode_mcu(HuffmanDecoder &h, const jpeg_decompress_struct &d, JBLOCKROW *blocks);
