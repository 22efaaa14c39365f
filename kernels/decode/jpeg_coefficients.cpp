// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_coefficients.h"

#include <algorithm>
#include <atomic>

#include "decode/jpeg_headers.h"
#include "decode/scan.h"

namespace {

// The most words of a block, and words written after them and discarded.
constexpr int kMostWords = 1 + 63 * 2, kLostWords = 2;

INLINE uint16_t word_of(int place, int value) {
  return (uint16_t)(kNatural.at[place] << kJpegPlaceBits | value & 1023);
}

// Like read_symbol, into words.
INLINE int read_symbol_words(Bits &b, const AcTable &t, int k, uint16_t *&to) {
  b.fill();
  int symbol = b.symbol(t.codes), size = symbol & 15, run = symbol >> 4;
  if (symbol <= 0) return symbol < 0 ? 65 : 64;
  if (size == 0 && run != 15 || k + run > 63) return 65;
  k += run;
  if (size > 0) {
    const int value = extend(b.window, 0, size);
    *to++ = word_of(k, value);
    if (value < -512 || value > 511) *to++ = (uint16_t)(value >> kJpegPlaceBits & 63);
  }
  b.drop(size);
  return k + 1;
}

// Like read_ac, into words. Look-ups with values know codes of up to kAcLook bits, so these need no second word.
INLINE bool read_words(Bits &b, const AcTable &t, uint16_t *&to) {
  const AcTable::Entry *e;
  uint64_t before;
  uint16_t *last;
  int k = 1;
  for (;;) {
    b.fill();
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
      before = b.window;
      e = &t.fast[before >> (64 - kAcLook)];
      b.drop(e->length);
      last = to;
      const uint64_t bits = before >> (-e->length & 63) & ((1ull << e->size2) - 1);
      *to = word_of(k + e->run1, e->value1);
      to += e->run1 < kNowhere;
      *to = word_of(k + e->run2, (int)bits + e->base2);
      to += e->run2 < kNowhere;
      k += e->step;
      if (k >= 64) goto end;
    }
    continue;
  end:
    if (is_end(k)) return true;
    b.window = before;
    b.held += e->length;
    to = last;
    k = read_symbol_words(b, t, k - e->step, to);
    if (k >= 64) return k == 64;
  }
}

// What to do with a block of each MCU of a row.
struct Target {
  uint32_t *place;  // of the first stored block; null if the row is not stored
  int x, step;      // its column in the first MCU; columns to the next
  int begin, end;   // columns that are stored
};
CLONES bool read_row(Scan &scan, const Target *targets, uint16_t *&end, const uint16_t *words) {
  Bits bits = scan.bits;
  uint16_t *to = end;
  for (int mcu = 0; mcu < (int)scan.mcus_per_row; mcu++) {
    if (!scan.next_mcu(bits)) return false;
    for (int i = 0; i < scan.n_blocks; i++) {
      const Target &t = targets[i];
      const Scan::Block &b = scan.blocks[i];
      const int x = t.x + mcu * t.step;
      if (!t.place || x < t.begin || x >= t.end) {
        if (!scan.skip_block(bits, b)) return false;
        continue;
      }
      if (!scan.read_first(bits, b)) return false;
      uint16_t *first = to;
      *to++ = (uint16_t)scan.last_dc[b.component];
      if (!read_words(bits, *b.ac, to)) return false;
      t.place[x - t.begin] = (uint32_t)(first - words) << kJpegCountBits | (uint32_t)(to - first - 1);
    }
    if (!scan.within(bits)) return false;
  }
  scan.bits = bits;
  end = to;
  return true;
}

// Decodes up to the last stored block. Returns the end of the words, or null if the data is irregular.
uint16_t *read_blocks(const JpegRecord &r, Scan &scan, uint32_t *places, uint16_t *const words) {
  int last_row = 0;
  for (int c = 0; c < r.n_components; c++)
    if (r.high[c]) last_row = std::max(last_row, (r.first_y[c] + r.high[c] - 1) / r.v[c]);
  uint16_t *to = words;
  for (int row = 0; row <= last_row; row++) {
    Target targets[D_MAX_BLOCKS_IN_MCU] = {};
    for (int i = 0; i < scan.n_blocks; i++) {
      const Scan::Block &b = scan.blocks[i];
      const int c = b.component, y = row * r.v[c] + b.y - r.first_y[c];
      if (y < 0 || y >= r.high[c]) continue;
      uint32_t *place = places + r.first_block[c] + (int64_t)y * r.wide[c];
      targets[i] = {place, b.x, r.h[c], r.first_x[c], r.first_x[c] + r.wide[c]};
    }
    if (!read_row(scan, targets, to, words)) return nullptr;
  }
  return to;
}

// Returns false if there is no room.
bool append(const JpegCoefficientsArgs &a, JpegRecord &r, const uint8_t *from, int64_t bytes) {
  const int64_t taken = (bytes + 15) / 16 * 16;
  auto &used = *reinterpret_cast<std::atomic<int64_t> *>(a.used);
  int64_t at = used.load(std::memory_order_relaxed);
  do {
    if (taken > a.capacity - at) return false;
  } while (!used.compare_exchange_weak(at, at + taken, std::memory_order_relaxed));
  memcpy(reinterpret_cast<uint8_t *>(a.arena) + at, from, bytes);
  r.offset = at;
  r.bytes = bytes;
  return true;
}

// Returns false if the file is left to `decode`.
bool read(JpegHeaders &j, const JpegCoefficientsArgs &a, JpegRecord &r, Scratch &scratch) {
  if (!read_headers(j, a.height, a.width)) return false;
  const Window oriented{a.y, a.x, a.window_height, a.window_width};
  describe_picture(r, j.d, stored_window(oriented, a.orientation, a.height, a.width), a.gray);
  Bytes scan{j.source.next_input_byte, (int64_t)j.source.bytes_in_buffer};
  const int64_t size = scan.size;
  Scan blocks;
  if (!blocks.begin(j.d, scan, true, scratch)) return false;
  // A coefficient takes at least two bits of the file.
  const int64_t most_words =
      std::min<int64_t>((int64_t)r.n_blocks * kMostWords, r.n_blocks + 4 * size + kMostWords) + kLostWords;
  if (most_words >> (32 - kJpegCountBits)) return false;
  auto *places = static_cast<uint32_t *>(scratch.get(r.n_blocks * 4ll + most_words * 2, 0));
  auto *words = reinterpret_cast<uint16_t *>(places + r.n_blocks);
  const uint16_t *end = read_blocks(r, blocks, places, words);
  return end && append(a, r, reinterpret_cast<uint8_t *>(places), (const uint8_t *)end - (const uint8_t *)places);
}

void run(const Tensor *out, const Tensor *in, const JpegCoefficientsArgs &a, Scratch &scratch) {
  if (out->volume() * item_size(out->dtype) != sizeof(JpegRecord))
    fail("[internal error] a record takes %d bytes", (int)sizeof(JpegRecord));
  JpegRecord &r = *out->as<JpegRecord>();
  memset(&r, 0, sizeof r);
  if (a.format != FORMAT_JPEG || a.window_height < 1 || a.window_width < 1) return;
  const Bytes bytes{in->as<const uint8_t>(), in->volume() * item_size(in->dtype)};
  if (!with_headers(bytes, [&](JpegHeaders &j) { return read(j, a, r, scratch); })) memset(&r, 0, sizeof r);
}

}  // namespace

EXPORT_KERNEL(jpeg_coefficients, JpegCoefficientsArgs, run)
