// SPDX-License-Identifier: Apache-2.0
#include "decode/huffman.h"

#include <algorithm>

namespace {

// An MCU takes at most 10 blocks of 64 symbols of 31 bits: zeros behind the data let it run out of it before that is
// noticed.
constexpr int64_t kSlack = 10 * 64 * 4 + 16;
constexpr int kEndOfBlock = 64;

// Figure A.6 of ITU-T T.81.
constexpr uint8_t kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
                                 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
                                 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// The value of `size` extra bits (F.2.2.1): their upper half is positive.
inline int extend(uint32_t bits, int size) {
  return size && bits < 1u << (size - 1) ? (int)bits - (1 << size) + 1 : (int)bits;
}

bool build(HuffmanTable &t, const JHUFF_TBL *from, bool is_dc) {
  if (!from) return false;
  memset(t.fast, 0, sizeof t.fast);
  memset(t.codes, 0, sizeof t.codes);
  memcpy(t.symbols, from->huffval, 256);
  uint32_t code = 0;
  int place = 0;
  for (int length = 1; length <= 16; length++, code <<= 1) {
    t.offset[length] = place - (int)code;
    for (int i = 0; i < from->bits[length]; i++, code++, place++) {
      if (place >= 256 || code >= 1u << length) return false;
      int symbol = from->huffval[place], size = symbol & 15, run = symbol >> 4;
      if (is_dc && symbol > 11) return false;
      if (length > kLookBits) continue;
      int rest = kLookBits - length;
      for (uint32_t tail = 0; tail < 1u << rest; tail++) {
        uint32_t index = code << rest | tail;
        t.codes[index] = (uint16_t)(length << 8 | symbol);
        if (!is_dc && symbol == 0)
          t.fast[index] = {(uint8_t)length, kEndOfBlock, 0};
        else if (!is_dc && size == 0 && run != 15)
          continue;  // no such symbol in baseline
        else if (size <= rest)
          t.fast[index] = {(uint8_t)(length + size), (uint8_t)(is_dc ? 0 : run),
                           (int16_t)extend(tail >> (rest - size), size)};
      }
    }
    t.limit[length] = code << (16 - length);
  }
  t.limit[17] = UINT32_MAX;
  return true;
}

struct Bits {
  uint64_t window;
  int held;
  const uint8_t *next;

  // At least 56 bits are held afterwards. Bytes that only half fit in are read again next time.
  void fill() {
    uint64_t word;
    memcpy(&word, next, 8);
    window |= __builtin_bswap64(word) >> held;
    next += (63 - held) >> 3;
    held |= 56;
  }
  void drop(int n) {
    window <<= n;
    held -= n;
  }
  uint32_t look(int n) const { return (uint32_t)(window >> (64 - n)); }

  // The next symbol of any length; -1 if there is no such code.
  int symbol(const HuffmanTable &t) {
    int code = t.codes[look(kLookBits)];
    if (code) {
      drop(code >> 8);
      return code & 255;
    }
    uint32_t bits = look(16);
    int length = kLookBits + 1;
    while (bits >= t.limit[length]) length++;
    if (length > 16) return -1;
    drop(length);
    return t.symbols[(bits >> (16 - length)) + t.offset[length] & 255];
  }
  int value(int size) {
    if (size == 0) return 0;
    uint32_t bits = look(size);
    drop(size);
    return extend(bits, size);
  }
};

template <bool keep>
inline bool read_ac(Bits &b, const HuffmanTable &t, JCOEF *out) {
  for (int k = 1; k < 64; k++) {
    if (b.held < 32) b.fill();  // a symbol takes at most 16 + 15 bits
    HuffmanTable::Entry e = t.fast[b.look(kLookBits)];
    if (e.length) {
      b.drop(e.length);
      k += e.run;
      if (k > 63) return e.run == kEndOfBlock;
      if (keep) out[kZigzag[k]] = e.value;
    } else {
      int symbol = b.symbol(t), size = symbol & 15, run = symbol >> 4;
      if (symbol < 0) return false;
      if (size == 0) {
        if (run == 0) return true;
        if (run != 15) return false;
      }
      k += run;
      if (k > 63) return false;
      int value = b.value(size);
      if (keep) out[kZigzag[k]] = (JCOEF)value;
    }
  }
  return true;
}

inline bool read_block(Bits &b, HuffmanDecoder &h, const HuffmanDecoder::Block &block, JCOEF *out) {
  b.fill();
  HuffmanTable::Entry e = block.dc->fast[b.look(kLookBits)];
  int difference = e.value;
  if (e.length) {
    b.drop(e.length);
  } else {
    int size = b.symbol(*block.dc);
    if (size < 0) return false;
    difference = b.value(size);
  }
  int dc = h.last_dc[block.component] + difference;
  if (dc != (int16_t)dc) return false;
  h.last_dc[block.component] = (int16_t)dc;
  if (out && block.keep_dc) out[0] = (JCOEF)dc;
  return out && block.keep_ac ? read_ac<true>(b, *block.ac, out) : read_ac<false>(b, *block.ac, nullptr);
}

// Copies the scan without the zeros stuffed behind 0xff, up to the end marker (D9), and notes where restart intervals
// end (D0 to D7 in turn). Returns the number of intervals; 0 if there are other markers, or too few.
int unstuff(Bytes in, uint8_t *out, uint8_t **out_end, uint32_t *ends, int most_intervals) {
  const uint8_t *from = in.data, *end = in.data + in.size;
  uint8_t *begin = out;
  int n = 0;
  for (;;) {
    auto *mark = static_cast<const uint8_t *>(memchr(from, 0xff, end - from));
    if (!mark || mark + 1 >= end) return 0;
    int64_t length = mark - from;
    memcpy(out, from, length);
    out += length;
    int code = mark[1];
    from = mark + 2;
    if (code == 0) {
      *out++ = 0xff;
      continue;
    }
    if (n == most_intervals) return 0;
    ends[n++] = (uint32_t)(out - begin);
    if (code == 0xd0 + ((n - 1) & 7) && n < most_intervals) continue;
    *out_end = out;
    return n == most_intervals && code == 0xd9 ? n : 0;
  }
}

void start_interval(HuffmanDecoder &h, const uint8_t *begin, const uint8_t *end) {
  h.next = begin;
  h.end = end;
  h.window = 0;
  h.held = 0;
  memset(h.last_dc, 0, sizeof h.last_dc);
}

}  // namespace

bool begin_scan(HuffmanDecoder &h, const jpeg_decompress_struct &d, Bytes in, Scratch &scratch) {
  if (d.progressive_mode || d.arith_code || d.data_precision != 8 || d.comps_in_scan != d.num_components) return false;
  if (d.Ss != 0 || d.Se != 63 || d.Ah != 0 || d.Al != 0 || d.unread_marker != 0) return false;
  int64_t n_mcus = (int64_t)d.MCUs_per_row * d.MCU_rows_in_scan;
  int64_t n_intervals = d.restart_interval ? (n_mcus + d.restart_interval - 1) / d.restart_interval : 1;
  if (n_mcus < 1 || in.size > UINT32_MAX || n_intervals > in.size) return false;

  bool built[8] = {};
  h.n_blocks = d.blocks_in_MCU;
  for (int i = 0; i < h.n_blocks; i++) {
    const jpeg_component_info &c = *d.cur_comp_info[d.MCU_membership[i]];
    for (int table : {c.dc_tbl_no, 4 + c.ac_tbl_no}) {
      bool is_dc = table < 4;
      if (!built[table] &&
          !build(h.tables[table], is_dc ? d.dc_huff_tbl_ptrs[table] : d.ac_huff_tbl_ptrs[table - 4], is_dc))
        return false;
      built[table] = true;
    }
    bool keep = c.component_needed;
    h.blocks[i] = {&h.tables[c.dc_tbl_no], &h.tables[4 + c.ac_tbl_no], d.MCU_membership[i], keep,
                   keep && dct_size(c) > 1};
  }

  int64_t ends_bytes = (n_intervals * 4 + 63) / 64 * 64;
  auto *memory = static_cast<uint8_t *>(scratch.get(ends_bytes + in.size + kSlack, 2));
  auto *ends = reinterpret_cast<uint32_t *>(memory);
  uint8_t *bytes = memory + ends_bytes;
  uint8_t *end = nullptr;
  if (unstuff(in, bytes, &end, ends, (int)n_intervals) != n_intervals) return false;
  memset(end, 0, kSlack);
  h.intervals_left = (int)n_intervals - 1;
  h.interval_ends = ends;
  h.mcus_to_restart = d.restart_interval ? (int)d.restart_interval : INT32_MAX;
  start_interval(h, bytes, bytes + ends[0]);
  return true;
}

bool decode_mcu(HuffmanDecoder &h, const jpeg_decompress_struct &d, JBLOCKROW *blocks) {
  if (h.mcus_to_restart == 0) {
    if (h.intervals_left-- == 0) return false;
    const uint8_t *begin = h.end;
    uint32_t length = h.interval_ends[1] - h.interval_ends[0];
    h.interval_ends++;
    h.mcus_to_restart = (int)d.restart_interval;
    start_interval(h, begin, begin + length);
  }
  h.mcus_to_restart--;
  Bits b{h.window, h.held, h.next};
  for (int i = 0; i < h.n_blocks; i++)
    if (!read_block(b, h, h.blocks[i], blocks ? blocks[i][0] : nullptr)) return false;
  h.window = b.window;
  h.held = b.held;
  h.next = b.next;
  // More bits taken than there are.
  return b.next - b.held / 8 <= h.end;
}
