// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_coefficients.h"

#include <algorithm>
#include <atomic>
#include <csetjmp>

#include "decode/codec.h"
#include "decode/libjpeg.h"
#include "decode/scan.h"

namespace {

// libjpeg reads the headers. Whatever it complains about is left to `decode`.
struct Headers {
  jpeg_decompress_struct d;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jmp_buf failed;
};

Headers &headers_of(j_common_ptr d) { return *static_cast<Headers *>(d->client_data); }
void give_up(j_common_ptr d) { longjmp(headers_of(d).failed, 1); }
void warn(j_common_ptr d, int level) {
  if (level < 0) give_up(d);
}
void print_nothing(j_common_ptr) {}
void no_source(j_decompress_ptr) {}
boolean end_of_source(j_decompress_ptr d) {
  give_up(reinterpret_cast<j_common_ptr>(d));
  return FALSE;
}
void skip_source(j_decompress_ptr d, long n) {
  if (n <= 0) return;
  if ((size_t)n > d->src->bytes_in_buffer) give_up(reinterpret_cast<j_common_ptr>(d));
  d->src->next_input_byte += n;
  d->src->bytes_in_buffer -= n;
}

// A block's words at most, and what is written behind them and lost.
constexpr int kMostWords = 1 + 63 * 2, kLostWords = 2;

INLINE uint16_t word_of(int place, int value) {
  return (uint16_t)(kNatural.at[place] << kJpegPlaceBits | value & 1023);
}

// As read_symbol, into words.
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

// As read_ac, into words. Look-ups that give values know codes of up to kAcLook bits, so these need no second word.
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

bool is_supported(const jpeg_decompress_struct &d) {
  if (d.progressive_mode || d.arith_code || d.comps_in_scan != d.num_components) return false;
  if (d.num_components != 1 && d.num_components != 3) return false;
  for (int c = 0; c < d.num_components; c++) {
    const jpeg_component_info &k = d.comp_info[c];
    if (d.max_h_samp_factor % k.h_samp_factor || d.max_v_samp_factor % k.v_samp_factor) return false;
    if (k.quant_tbl_no < 0 || k.quant_tbl_no >= NUM_QUANT_TBLS || !d.quant_tbl_ptrs[k.quant_tbl_no]) return false;
  }
  switch (d.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return d.num_components == 1;
    case JCS_YCbCr:
    case JCS_RGB:
      return d.num_components == 3;
    default:
      return false;
  }
}

// The blocks of n samples that upsampling to [at, at + length) of `image` pixels reads, where max / factor pixels are
// a sample: its neighbours belong to it.
void block_range(int64_t at, int64_t length, int factor, int max, int64_t n, int32_t *first, int32_t *count) {
  const int64_t lo = std::max<int64_t>(at * factor / max - 1, 0),
                hi = std::min<int64_t>((at + length - 1) * factor / max + 1, n - 1);
  *first = (int32_t)(lo / 8);
  *count = (int32_t)(hi / 8 + 1 - lo / 8);
}

void describe(JpegRecord &r, const jpeg_decompress_struct &d, const Window &w, bool gray) {
  r.n_components = d.num_components;
  r.colour = d.jpeg_color_space == JCS_GRAYSCALE ? JPEG_GRAY : d.jpeg_color_space == JCS_RGB ? JPEG_RGB : JPEG_YCC;
  r.max_h = r.n_components == 1 ? 1 : d.max_h_samp_factor;
  r.max_v = r.n_components == 1 ? 1 : d.max_v_samp_factor;
  r.n_blocks = 0;
  for (int c = 0; c < r.n_components; c++) {
    const jpeg_component_info &k = d.comp_info[c];
    r.h[c] = r.n_components == 1 ? 1 : k.h_samp_factor;
    r.v[c] = r.n_components == 1 ? 1 : k.v_samp_factor;
    r.width[c] = (int32_t)k.downsampled_width;
    r.height[c] = (int32_t)k.downsampled_height;
    for (int i = 0; i < 64; i++) r.quantization[64 * c + i] = d.quant_tbl_ptrs[k.quant_tbl_no]->quantval[i];
    r.first_block[c] = r.n_blocks;
    if (c > 0 && gray && r.colour == JPEG_YCC) continue;
    block_range(w.x, w.width, r.h[c], r.max_h, r.width[c], &r.first_x[c], &r.wide[c]);
    block_range(w.y, w.height, r.v[c], r.max_v, r.height[c], &r.first_y[c], &r.high[c]);
    r.n_blocks += r.wide[c] * r.high[c];
  }
}

// What becomes of a block of each MCU of a row.
struct Target {
  uint32_t *place;  // of the first stored block; null: the row is not stored
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

// Decodes down to the last stored block. Returns the end of the words, or null if the data is irregular.
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

// False: no room.
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

// False: to be left to `decode`.
bool read(Headers &j, Bytes in, const JpegCoefficientsArgs &a, JpegRecord &r, Scratch &scratch) {
  jpeg_create_decompress(&j.d);
  j.source = {in.data, (size_t)in.size, no_source, end_of_source, skip_source, jpeg_resync_to_restart, no_source};
  j.d.src = &j.source;
  jpeg_read_header(&j.d, TRUE);
  if ((int64_t)j.d.image_height != a.height || (int64_t)j.d.image_width != a.width || !is_supported(j.d)) return false;
  const Window oriented{a.y, a.x, a.window_height, a.window_width};
  describe(r, j.d, stored_window(oriented, a.orientation, a.height, a.width), a.gray);
  Bytes scan{j.source.next_input_byte, (int64_t)j.source.bytes_in_buffer};
  Scan blocks;
  if (!blocks.begin(j.d, scan, true, scratch)) return false;
  // A coefficient takes at least two bits of the file.
  const int64_t most_words =
      std::min<int64_t>((int64_t)r.n_blocks * kMostWords, r.n_blocks + 4 * in.size + kMostWords) + kLostWords;
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
  Headers j;
  memset(&j.d, 0, sizeof j.d);
  j.d.err = jpeg_std_error(&j.errors);
  j.errors.error_exit = give_up;
  j.errors.emit_message = warn;
  j.errors.output_message = print_nothing;
  j.d.client_data = &j;
  bool done = false;
  if (!setjmp(j.failed)) {
    const Bytes bytes{in->as<const uint8_t>(), in->volume() * item_size(in->dtype)};
    try {
      done = read(j, bytes, a, r, scratch);
    } catch (...) {
      jpeg_destroy_decompress(&j.d);
      throw;
    }
  }
  jpeg_destroy_decompress(&j.d);
  if (!done) memset(&r, 0, sizeof r);
}

}  // namespace

EXPORT_KERNEL(jpeg_coefficients, JpegCoefficientsArgs, run)
