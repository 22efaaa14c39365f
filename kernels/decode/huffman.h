// SPDX-License-Identifier: Apache-2.0
// Huffman codes of baseline JPEG (ITU-T T.81, F.2.2), read one or two symbols at a time.
//
// Decoding is a chain of dependent steps: the next code begins where this one ends. So the look-up gives the length
// first, of a symbol with its extra bits and, where the bits looked at show its code, of the next symbol too; the
// values are computed beside the chain. Whatever is irregular is refused, for libjpeg to judge.
#pragma once
#include <cstring>

#include "core/tensor.h"

// These gain from being compiled for the instruction set of the loop they are in.
#define INLINE __attribute__((always_inline)) inline

constexpr int kDcLook = 8, kAcLook = 10, kSkipLook = 11;
constexpr int kEndOfBlock = 128;  // added to the place in a block when it ends
constexpr int kOther = 255;       // added when a symbol is not in the table
constexpr int kNowhere = 128;     // added to a place, what is stored there is lost
constexpr int kBlockRoom = 80;    // coefficients a block needs, the last 16 of which are lost

// Any code, by comparing with the first code of each length.
struct CodeLengths {
  uint32_t limit[18];  // left-aligned in 16 bits: where the codes of this length end
  int32_t offset[17];  // from a code to its place in `symbols`
  uint8_t symbols[256];
};

// The size of a difference (0 to 11) and its extra bits.
struct DcTable {
  struct Entry {
    uint8_t length;  // of code and extra bits; 0: the code is longer than kDcLook bits
    uint8_t skip;    // of the code
    uint8_t size;
    uint8_t unused;
  };
  Entry fast[1 << kDcLook];
  CodeLengths codes;
};

// Runs of zeros and the coefficient behind them. An entry has up to two of them: the first complete in the bits looked
// at; of the second, the code and the sign. One that is missing goes nowhere.
struct AcTable {
  struct Entry {
    uint8_t length;      // of all; 0: no symbol that is in this table
    uint8_t step;        // how far the place in the block moves
    uint8_t run1, run2;  // from the place to the coefficients
    int16_t value1;
    uint8_t size2;  // how many of the bits, the last ones, are the second's
    int8_t base2;   // what to add to them
  };
  Entry fast[1 << kAcLook];
  CodeLengths codes;
  uint8_t counts[17];
  // For blocks that nobody wants: as many symbols as the next bits hold.
  struct Skip {
    uint8_t length, step;
  };
  bool has_skips;
  Skip skips[1 << kSkipLook];
};

// Three look-ups are made between refills.
constexpr int kMostFastBits = 18;

// The tables of a DHT segment: how many codes there are of each length (1 to 16), and their symbols. They are kept per
// thread, as most files have the same; null if they are not a code. A table lives until seven others were asked for.
const DcTable *dc_table(const uint8_t counts[17], const uint8_t symbols[256]);
const AcTable *ac_table(const uint8_t counts[17], const uint8_t symbols[256], bool with_skips);

// From the place in a block to the one in rows (figure A.6 of ITU-T T.81), and behind it for what is to be lost.
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
  uint64_t window;      // the next bits, first at the top
  int held;             // how many of them are valid
  const uint8_t *next;  // 8 bytes can be read from here

  // At least 56 bits are held afterwards. Bytes that only half fit in are read again next time.
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
  // The next symbol of any length; -1 if there is no such code.
  int symbol(const CodeLengths &c) {
    uint32_t bits = (uint32_t)(window >> 48);
    int length = 1;
    while (bits >= c.limit[length]) length++;
    if (length > 16) return -1;
    drop(length);
    return c.symbols[(bits >> (16 - length)) + c.offset[length] & 255];
  }
};

// The value of the `size` extra bits behind the first `skip` (F.2.2.1): their upper half is positive.
INLINE int extend(uint64_t window, int skip, int size) {
  const uint64_t bits = window << skip, negative = ~(uint64_t)((int64_t)bits >> 63);
  return (int)(bits >> 1 >> (63 - size)) - (int)(negative & ((1ull << size) - 1));
}

// One symbol of any kind; into zeros, if there are any. Returns the place behind it (64 at the end of the block); 65:
// irregular.
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

// Whether a block has ended well at place k >= 64. If not, the symbol is not in the table, or several were taken of
// which the first may have been the block's last: it is to be read again, as a single one.
INLINE bool is_end(int k) { return k == 64 || k > kEndOfBlock && k < kEndOfBlock + 64; }

// Reads the coefficients behind the first into zeros. False: irregular.
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

// Reads over them.
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

// The first coefficient as a difference; INT32_MAX: irregular.
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
