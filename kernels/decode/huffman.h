// SPDX-License-Identifier: Apache-2.0
// Huffman codes of baseline JPEG (ITU-T T.81, F.2.2), read one or two symbols at a time.
//
// Decoding is a chain of dependent steps: the next code begins where this one ends. So a look-up first gives the
// length, of a symbol with its extra bits and, if its code is visible, of the next symbol too; the values are computed
// in parallel. Irregular data is refused, for libjpeg to judge.
#pragma once
#include <cstring>

#include "core/tensor.h"

// Compiled for the instruction set of the loop they are inlined into.
#define INLINE __attribute__((always_inline)) inline

constexpr int kDcLook = 8, kAcLook = 10, kSkipLook = 11;
constexpr int kEndOfBlock = 128;  // added to the position in a block at its end
constexpr int kOther = 255;       // added if a symbol is not in the table
constexpr int kNowhere = 128;     // added to a position whose value is to be discarded
constexpr int kBlockRoom = 80;    // coefficients a block needs; the last 16 are discarded

// Decodes any code by comparing with the first code of each length.
struct CodeLengths {
  uint32_t limit[18];  // per length, the end of its codes, left-aligned in 16 bits
  int32_t offset[17];  // from a code to its index in `symbols`
  uint8_t symbols[256];
};

// Bits of a DC difference (0 to 11), and the code before them.
struct DcTable {
  struct Entry {
    uint8_t length;  // of code and extra bits; 0: the code is longer than kDcLook bits
    uint8_t skip;    // length of the code
    uint8_t size;
    uint8_t unused;
  };
  Entry fast[1 << kDcLook];
  CodeLengths codes;
};

// Runs of zeros and the coefficient after them. An entry has up to two: the first is complete in the bits looked at; of
// the second, they hold the code and the sign. A missing one is written to kNowhere.
struct AcTable {
  struct Entry {
    uint8_t length;      // of all; 0 if no symbol in this table matches
    uint8_t step;        // step of the position in the block
    uint8_t run1, run2;  // from the position to the coefficients
    int16_t value1;
    uint8_t size2;  // the number of bits, the last ones, that belong to the second value
    int8_t base2;   // added to these bits
  };
  Entry fast[1 << kAcLook];
  CodeLengths codes;
  uint8_t counts[17];
  // For unwanted blocks: as many symbols as the next bits hold.
  struct Skip {
    uint8_t length, step;
  };
  bool has_skips;
  Skip skips[1 << kSkipLook];
};

// Three look-ups fit between refills.
constexpr int kMostFastBits = 18;

// The tables of a DHT segment: the number of codes of each length (1 to 16), and their symbols. Null if they are no
// valid code. Cached per thread, as most files use the same; a table lives until seven others have been requested.
const DcTable *dc_table(const uint8_t counts[17], const uint8_t symbols[256]);
const AcTable *ac_table(const uint8_t counts[17], const uint8_t symbols[256], bool with_skips);

// Maps a position in zigzag order to one in row order (figure A.6 of ITU-T T.81), then positions to be discarded.
struct Natural {
  uint8_t at[kNowhere + 64];
  constexpr Natural() : at() {
    int x = 0, y = 0;
    for (int k = 0; k < kNowhere + 64; k++) {
      at[k] = (uint8_t)(k < 64 ? 8 * y + x : 64);
      bool up = (x + y) % 2 == 0;
      if (up) {
        if (x == 7)
          y++;
        else if (y == 0)
          x++;
        else
          x++, y--;
      } else {
        if (y == 7)
          x++;
        else if (x == 0)
          y++;
        else
          x--, y++;
      }
    }
  }
};
constexpr Natural kNatural;

struct Bits {
  uint64_t window;      // the next bits, the first at the top
  int held;             // how many of them are valid
  const uint8_t *next;  // 8 bytes can be read from here

  // Holds at least 56 bits afterwards. Bytes that only fit partly are read again next time.
  INLINE void fill() {
    uint64_t word;
    memcpy(&word, next, 8);
    window |= __builtin_bswap64(word) >> held;
    next += (63 - held) >> 3;
    held |= 56;
  }
  INLINE void drop(int n) {
    window <<= n;
    held -= n;
  }
  // The next symbol of any length; -1 if no code matches.
  int symbol(const CodeLengths &c) {
    uint32_t bits = (uint32_t)(window >> 48);
    int length = 1;
    while (bits >= c.limit[length]) length++;
    if (length > 16) return -1;
    drop(length);
    return c.symbols[(bits >> (16 - length)) + c.offset[length] & 255];
  }
};

// The value of the `size` extra bits after the first `skip` (F.2.2.1): the upper half of the range is positive.
INLINE int extend(uint64_t window, int skip, int size) {
  const uint64_t bits = window << skip, negative = ~(uint64_t)((int64_t)bits >> 63);
  return (int)(bits >> 1 >> (63 - size)) - (int)(negative & ((1ull << size) - 1));
}

// Reads one symbol of any kind; writes into zeros unless `out` is null. Returns the next position (64 at the end of the
// block), or 65 if irregular.
INLINE int read_symbol(Bits &b, const AcTable &t, int k, int16_t *out) {
  b.fill();
  int symbol = b.symbol(t.codes), size = symbol & 15, run = symbol >> 4;
  if (symbol <= 0) return symbol < 0 ? 65 : 64;
  if (size == 0 && run != 15 || k + run > 63) return 65;
  k += run;
  if (out) out[kNatural.at[k]] = (int16_t)extend(b.window, 0, size);
  b.drop(size);
  return k + 1;
}

// Whether a block has ended properly at position k >= 64. If not, the symbol is not in the table, or the first of
// several may have been the block's last: read it again as a single one.
INLINE bool is_end(int k) { return k == 64 || k > kEndOfBlock && k < kEndOfBlock + 64; }

// Reads the coefficients after the first into zeros.
// FLAT: all of them are zeros.
enum Outcome { IRREGULAR, FULL, FLAT };

INLINE Outcome read_ac(Bits &b, const AcTable &t, int16_t *out) {
  const AcTable::Entry *e;
  uint64_t before;
  int k = 1;
  for (;;) {
    b.fill();
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
      before = b.window;
      e = &t.fast[before >> (64 - kAcLook)];
      b.drop(e->length);
      const uint8_t *place = kNatural.at + k;
      const uint64_t last = before >> (-e->length & 63) & ((1ull << e->size2) - 1);
      out[place[e->run1]] = e->value1;
      out[place[e->run2]] = (int16_t)((int)last + e->base2);
      k += e->step;
      if (k >= 64) goto end;
    }
    continue;
  end:
    if (is_end(k)) return k == kEndOfBlock + 1 ? FLAT : FULL;
    b.window = before;
    b.held += e->length;
    k = read_symbol(b, t, k - e->step, out);
    if (k >= 64) return k == 64 ? FULL : IRREGULAR;
  }
}

// Skips them. Returns false if irregular.
INLINE bool skip_ac(Bits &b, const AcTable &t) {
  const AcTable::Skip *e;
  uint64_t before;
  int k = 1;
  for (;;) {
    b.fill();
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
      before = b.window;
      e = &t.skips[before >> (64 - kSkipLook)];
      b.drop(e->length);
      k += e->step;
      if (k >= 64) goto end;
    }
    continue;
  end:
    if (is_end(k)) return true;
    b.window = before;
    b.held += e->length;
    k = read_symbol(b, t, k - e->step, nullptr);
    if (k >= 64) return k == 64;
  }
}

// The difference of the first coefficient; INT32_MAX if irregular.
INLINE int read_dc(Bits &b, const DcTable &t) {
  b.fill();
  const DcTable::Entry e = t.fast[b.window >> (64 - kDcLook)];
  int size = e.size, skip = e.skip;
  if (__builtin_expect(e.length == 0, 0)) {
    size = b.symbol(t.codes);
    if (size < 0) return INT32_MAX;
    skip = 0;
  }
  int value = extend(b.window, skip, size);
  b.drop(skip + size);
  return value;
}
