// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_scan.h"

#include <algorithm>
#include <atomic>

#include "decode/jpeg_headers.h"
#include "decode/jpeg_huffman.h"
#include "decode/jpeg_pixels.h"
#include "decode/scan.h"

namespace {

constexpr int64_t kMostBytes = 1 << 24, kMostBlocks = 1 << 27;  // the GPU has 28 bits for bit positions

// The index of a table among the first `most` of `tables`, added if it is new; -1 if there is no room.
int number_of(const CodeLengths *codes, const CodeLengths **tables, int most) {
  for (int i = 0; i < most; i++) {
    if (!tables[i]) tables[i] = codes;
    if (tables[i] == codes) return i;
  }
  return -1;
}

// Sets the tables of each block of an MCU. Returns false if there are more than baseline files have, or none.
bool describe_codes(JpegScan &s, const jpeg_decompress_struct &d) {
  const CodeLengths *tables[kScanTables] = {};
  s.mcu_blocks = 0;
  for (int i = 0; i < d.comps_in_scan; i++) {
    const jpeg_component_info &c = *d.cur_comp_info[i];
    if (c.component_index != i) return false;
    if (c.dc_tbl_no < 0 || c.dc_tbl_no > 3 || c.ac_tbl_no < 0 || c.ac_tbl_no > 3) return false;
    const JHUFF_TBL *dc = d.dc_huff_tbl_ptrs[c.dc_tbl_no], *ac = d.ac_huff_tbl_ptrs[c.ac_tbl_no];
    if (!dc || !ac) return false;
    const DcTable *dc_codes = dc_table(dc->bits, dc->huffval);
    const AcTable *ac_codes = ac_table(ac->bits, ac->huffval, false);
    if (!dc_codes || !ac_codes) return false;
    const int dc_number = number_of(&dc_codes->codes, tables, 2),
              ac_number = number_of(&ac_codes->codes, tables + 2, 2);
    if (dc_number < 0 || ac_number < 0) return false;
    const int n = d.comps_in_scan > 1 ? c.h_samp_factor * c.v_samp_factor : 1;
    if (s.mcu_blocks + n > D_MAX_BLOCKS_IN_MCU) return false;
    for (int k = 0; k < n; k++, s.mcu_blocks++) {
      s.component[s.mcu_blocks] = (uint8_t)i;
      s.dc[s.mcu_blocks] = (uint8_t)dc_number;
      s.ac[s.mcu_blocks] = (uint8_t)(2 + ac_number);
    }
  }
  for (int t = 0; t < kScanTables; t++) {
    if (!tables[t]) continue;
    memcpy(s.limit + 18 * t, tables[t]->limit, sizeof tables[t]->limit);
    memcpy(s.offset + 18 * t, tables[t]->offset, sizeof tables[t]->offset);
    memcpy(s.symbols + 256 * t, tables[t]->symbols, 256);
  }
  return true;
}

// Returns false if the file is left to other decoders.
bool read(JpegHeaders &j, const DecodeArgs &a, Window oriented, bool gray, uint8_t *data, JpegRecord &r, JpegScan &s) {
  if (!read_headers(j, a.height, a.width)) return false;
  const jpeg_decompress_struct &d = j.d;
  if (d.data_precision != 8 || d.Ss != 0 || d.Se != 63 || d.Ah != 0 || d.Al != 0 || d.unread_marker != 0) return false;
  if (d.restart_interval || !describe_codes(s, d)) return false;
  describe_picture(r, d, stored_window(oriented, a.orientation, a.height, a.width), gray);

  const bool interleaved = r.n_components > 1;
  auto mcus = [&](int64_t extent, int most, int of_component) {
    return interleaved ? (extent + 8 * most - 1) / (8 * most) : (of_component + 7) / 8;
  };
  const int64_t wide = mcus(a.width, r.max_h, r.width[0]), high = mcus(a.height, r.max_v, r.height[0]);
  const int64_t n_blocks = wide * high * s.mcu_blocks, size = (int64_t)j.source.bytes_in_buffer;
  if (size > kMostBytes || n_blocks > kMostBlocks || n_blocks > 8 * size) return false;
  uint8_t *end = nullptr;
  uint32_t end_of_interval;
  if (unstuff({j.source.next_input_byte, size}, data, &end, &end_of_interval, 1) != 1) return false;
  memset(end, 0, kScanSlack);
  s.bits = 8 * (end - data);
  s.n_blocks = (int32_t)n_blocks;
  int32_t first_row = INT32_MAX, last_row = -1;
  for (int c = 0; c < r.n_components; c++) {
    if (!r.high[c]) continue;
    first_row = std::min(first_row, r.first_y[c] / r.v[c]);
    last_row = std::max(last_row, (r.first_y[c] + r.high[c] - 1) / r.v[c]);
  }
  if (last_row < 0) return false;
  s.begin = (int32_t)(first_row * wide * s.mcu_blocks), s.end = (int32_t)((last_row + 1) * wide * s.mcu_blocks);
  s.likely_bits = std::min((int64_t)((double)s.end / (double)n_blocks * (double)s.bits) + s.bits / 16, s.bits);
  r.n_places = 2 * (int32_t)n_blocks;
  r.mcus_per_row = (int32_t)wide;
  r.mcu_blocks = s.mcu_blocks;
  r.bytes = end - data;
  return true;
}

std::atomic<int64_t> &counter(int64_t &c) { return reinterpret_cast<std::atomic<int64_t> &>(c); }

void run(const Tensor *, const Tensor *in, const JpegScanArgs &args, Scratch &) {
  const DecodeArgs &a = *reinterpret_cast<const DecodeArgs *>(args.decode);
  JpegScanBatch &batch = *reinterpret_cast<JpegScanBatch *>(args.batch);
  const int64_t i = args.number, at_record = batch.records + i * (int64_t)sizeof(JpegRecord),
                at_scan = batch.scans + i * (int64_t)sizeof(JpegScan);
  auto host = [&](int64_t at) { return reinterpret_cast<uint8_t *>(batch.host + at); };
  auto device = [&](int64_t at) { return reinterpret_cast<const uint8_t *>(batch.device + at); };
  JpegRecord &r = *reinterpret_cast<JpegRecord *>(host(at_record));
  JpegScan &s = *reinterpret_cast<JpegScan *>(host(at_scan));
  memset(&r, 0, sizeof r);
  memset(&s, 0, sizeof s);
  *host(batch.statuses + i) = 0;
  const int64_t height = in[1].shape[0], width = in[1].shape[1];
  bool taken = false;
  if (a.format == FORMAT_JPEG && height > 0 && width > 0) {
    const Bytes file{in->as<const uint8_t>(), in->volume() * item_size(in->dtype)};
    const Window oriented{a.y, a.x, height, width};
    auto read_file = [&](JpegHeaders &j) { return read(j, a, oriented, in[1].shape[2] == 1, host(args.data), r, s); };
    try {
      taken = with_headers(file, read_file);
    } catch (const std::exception &) {  // other decoders decide; the rows below are read anyway
    }
  }
  int64_t places = 0, planes = 0;
  if (taken) {
    const int32_t bits = (int32_t)s.bits, piece = piece_of(bits);
    const int64_t words = (int64_t)((bits + piece - 1) / piece) * words_of_piece(piece);
    const int64_t coefficients = (4ll * r.n_places + 2 * words + 15) / 16 * 16, room = coefficients + 64ll * r.n_blocks;
    places = counter(batch.wanted).fetch_add(room, std::memory_order_relaxed);
    planes = places + coefficients;
    counter(batch.taken).fetch_add(1, std::memory_order_relaxed);
    int64_t most = counter(batch.most_blocks).load(std::memory_order_relaxed);
    while (most < r.n_blocks && !counter(batch.most_blocks).compare_exchange_weak(most, r.n_blocks)) {
    }
  } else {
    memset(&r, 0, sizeof r);
    s.n_blocks = 0;
  }
  auto &huffman = reinterpret_cast<JpegHuffmanArgs *>(host(batch.huffman))[i];
  auto &pixels = reinterpret_cast<JpegPixelsArgs *>(host(batch.pixels))[i];
  huffman = {device(at_record), device(at_scan), device(args.data), device(batch.statuses + i), places};
  pixels = {device(at_record), planes, places, a.y, a.x, a.height, a.width, a.orientation, a.output_type};
}

}  // namespace

EXPORT_KERNEL(jpeg_scan, JpegScanArgs, run)
