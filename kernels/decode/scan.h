// SPDX-License-Identifier: Apache-2.0
// The only scan of a baseline JPEG file, without its byte stuffing, so that 8 bytes are read at once.
//
// It accepts only flawless data. Irregular data is left to libjpeg, which decides (warning, error or pixels).
#pragma once
#include "decode/huffman.h"
#include "decode/image.h"
#include "decode/libjpeg.h"

constexpr int kMostComponents = 4;

struct Scan {
  Bits bits;
  const uint8_t *end;  // of the restart interval, without stuffing
  int intervals_left, restart_interval, mcus_to_restart;
  const uint32_t *interval_ends;  // of this and the following intervals, as offsets
  int last_dc[kMostComponents];
  int64_t mcus_per_row, mcu_rows;
  int n_blocks;
  // A block of an MCU: its component, and its place in the MCU.
  struct Block {
    const DcTable *dc;
    const AcTable *ac;
    int component, x, y;
  } blocks[D_MAX_BLOCKS_IN_MCU];

  // Prepares for the scan that begins at `in`, whose header libjpeg has read. `skips`: some blocks will be skipped.
  // Returns false if it is left to libjpeg. Uses part 2 of the scratch.
  bool begin(const jpeg_decompress_struct &d, Bytes in, bool skips, Scratch &scratch);

  // Called before each MCU with the loop's copy of `bits`. Returns false if no further MCU is expected.
  INLINE bool next_mcu(Bits &local) {
    if (mcus_to_restart == 0) {
      if (!next_interval()) return false;
      local = bits;
    }
    mcus_to_restart--;
    return true;
  }
  // Called after each MCU. Returns false if more bits were read than there are.
  INLINE bool within(const Bits &local) const { return local.next - local.held / 8 <= end; }

  // The first coefficient of a block. Returns false if irregular.
  INLINE bool read_first(Bits &local, const Block &b) {
    const int difference = read_dc(local, *b.dc);
    if (difference == INT32_MAX) return false;
    const int dc = last_dc[b.component] + difference;
    if (dc != (int16_t)dc) return false;
    last_dc[b.component] = dc;
    return true;
  }
  // Reads a block into zeros.
  INLINE Outcome read_block(Bits &local, const Block &b, int16_t *out) {
    if (!read_first(local, b)) return IRREGULAR;
    out[0] = (int16_t)last_dc[b.component];
    return read_ac(local, *b.ac, out);
  }
  // Skips a block. Returns false if irregular.
  INLINE bool skip_block(Bits &local, const Block &b) { return read_first(local, b) && skip_ac(local, *b.ac); }

 private:
  bool next_interval();
  void start_interval(const uint8_t *begin, const uint8_t *end);
};

// Copies the scan without the zeros stuffed after 0xff, up to the end marker (D9), and records where restart intervals
// end (D0 to D7 in turn). Returns the number of intervals; 0 if there are other markers, or too few.
int unstuff(Bytes in, uint8_t *out, uint8_t **out_end, uint32_t *ends, int most_intervals);
