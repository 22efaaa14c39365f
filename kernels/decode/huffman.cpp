// SPDX-License-Identifier: Apache-2.0
#include "decode/huffman.h"

#include <memory>

namespace {

// Fills `found` with length << 8 | symbol of the code at the start of the next `look` bits; 0 if it is longer.
bool build(CodeLengths &c, const uint8_t counts[17], const uint8_t symbols[256], int look, uint16_t *found) {
  memset(found, 0, sizeof *found << look);
  memcpy(c.symbols, symbols, 256);
  uint32_t code = 0;
  int place = 0;
  c.limit[0] = 0;
  for (int length = 1; length <= 16; length++, code <<= 1) {
    c.offset[length] = place - (int)code;
    for (int i = 0; i < counts[length]; i++, code++, place++) {
      if (place >= 256 || code >= 1u << length) return false;
      if (length > look) continue;
      int rest = look - length;
      for (uint32_t tail = 0; tail < 1u << rest; tail++)
        found[code << rest | tail] = (uint16_t)(length << 8 | symbols[place]);
    }
    c.limit[length] = code << (16 - length);
  }
  c.limit[17] = UINT32_MAX;
  return true;
}

bool build(DcTable &t, const uint8_t counts[17], const uint8_t symbols[256]) {
  uint16_t found[1 << kDcLook];
  if (!build(t.codes, counts, symbols, kDcLook, found)) return false;
  int n = 0;
  for (int length = 1; length <= 16; length++) n += counts[length];
  for (int i = 0; i < n; i++)
    if (symbols[i] > 11) return false;
  for (int i = 0; i < 1 << kDcLook; i++) {
    int length = found[i] >> 8, size = found[i] & 255;
    t.fast[i] = {(uint8_t)(length ? length + size : 0), (uint8_t)length, (uint8_t)size, 0};
  }
  return true;
}

bool build(AcTable &t, const uint8_t counts[17], const uint8_t symbols[256]) {
  t.has_skips = false;
  memcpy(t.counts, counts, 17);
  uint16_t found[1 << kAcLook];
  if (!build(t.codes, counts, symbols, kAcLook, found)) return false;
  for (int i = 0; i < 1 << kAcLook; i++) {
    AcTable::Entry &e = t.fast[i] = {0, kOther, kNowhere, kNowhere, 0, 0, 0};
    int bits = 0, step = 0;  // of the symbols so far
    for (int n = 0; n < 2; n++) {
      // The zeros after the bits looked at don't affect a code that ends before them.
      const int code = found[i << bits & ((1 << kAcLook) - 1)], symbol = code & 255;
      const int length = code >> 8, run = symbol >> 4, size = symbol & 15, end = bits + length + size;
      if (length == 0 || bits + length > kAcLook || end > kMostFastBits) break;
      if (symbol == 0) {
        e.length = (uint8_t)(bits + length);
        e.step = (uint8_t)(step + kEndOfBlock);
        break;
      }
      if (size == 0 && run != 15) break;  // no such symbol in baseline
      if (n == 0 && end <= kAcLook) {
        e.run1 = (uint8_t)run;
        e.value1 = (int16_t)extend((uint64_t)i << (64 - kAcLook), length, size);
      } else {
        // The sign is the first of the extra bits, so it must be among the bits looked at; size 0 has none.
        if (size > 0 && bits + length == kAcLook || size > 7) break;
        const bool negative = size > 0 && !(i >> (kAcLook - 1 - bits - length) & 1);
        e.run2 = (uint8_t)(step + run);
        e.size2 = (uint8_t)size;
        e.base2 = (int8_t)(negative ? 1 - (1 << size) : 0);
      }
      bits = end;
      step += run + 1;
      e.length = (uint8_t)bits;
      e.step = (uint8_t)step;
      if (bits >= kAcLook) break;
    }
  }
  return true;
}

void build_skips(AcTable &t) {
  uint16_t found[1 << kSkipLook];
  build(t.codes, t.counts, t.codes.symbols, kSkipLook, found);
  for (int i = 0; i < 1 << kSkipLook; i++) {
    int bits = 0, step = 0;
    bool ended = false;
    while (bits < kSkipLook && !ended) {
      const int code = found[i << bits & ((1 << kSkipLook) - 1)], symbol = code & 255;
      const int length = code >> 8, size = symbol & 15, end = bits + length + size;
      if (length == 0 || bits + length > kSkipLook || end > kMostFastBits) break;
      if (size == 0 && symbol != 0 && symbol != 0xf0) break;
      if (step + (symbol >> 4) + 1 > 64) break;
      ended = symbol == 0;
      bits = end;
      step += ended ? kEndOfBlock : (symbol >> 4) + 1;
    }
    t.skips[i] = {(uint8_t)bits, (uint8_t)(bits ? step : kOther)};
  }
  t.has_skips = true;
}

// The tables of the last files; the least recently used one is replaced.
template <class Table>
class Cache {
 public:
  Table *get(const uint8_t counts[17], const uint8_t symbols[256]) {
    Slot *slot = slots_;
    for (Slot &s : slots_) {
      if (s.table && !memcmp(s.counts, counts, 17) && !memcmp(s.symbols, symbols, 256)) {
        s.used = ++now_;
        return s.table.get();
      }
      if (s.used < slot->used) slot = &s;
    }
    if (!slot->table) slot->table.reset(new Table);
    slot->used = 0;
    memset(slot->counts, 255, 17);  // never equal to a table's counts
    if (!build(*slot->table, counts, symbols)) return nullptr;
    memcpy(slot->counts, counts, 17);
    memcpy(slot->symbols, symbols, 256);
    slot->used = ++now_;
    return slot->table.get();
  }

 private:
  struct Slot {
    std::unique_ptr<Table> table;
    uint64_t used = 0;
    uint8_t counts[17], symbols[256];
  };
  Slot slots_[8];
  uint64_t now_ = 0;
};

}  // namespace

const DcTable *dc_table(const uint8_t counts[17], const uint8_t symbols[256]) {
  static thread_local Cache<DcTable> cache;
  return cache.get(counts, symbols);
}

const AcTable *ac_table(const uint8_t counts[17], const uint8_t symbols[256], bool with_skips) {
  static thread_local Cache<AcTable> cache;
  AcTable *t = cache.get(counts, symbols);
  if (t && with_skips && !t->has_skips) build_skips(*t);
  return t;
}
