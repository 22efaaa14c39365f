// SPDX-License-Identifier: Apache-2.0
#include "decode/baseline.h"

#include <algorithm>

#include "color/interleave.h"
#include "decode/idct.h"
#include "decode/jpeg_level.h"
#include "decode/scan.h"
#include "decode/upsample.h"
#include "decode/ycc.h"

namespace {

enum Upsampling { AS_IS, H2, V2, H2V2, REPEAT };

// A component; positions in its own samples.
struct Component {
  bool wanted;
  int size, width, height;  // of a block in samples; of an MCU in blocks
  int times_x, times_y;     // how often each sample is repeated in the image
  Upsampling upsampling;
  int64_t columns, rows;          // of the whole component, without the padding of its last MCUs
  int64_t mcu_columns, mcu_rows;  // samples of an MCU
  const uint16_t *quantisers;
  InverseDct inverse_dct;
  // Rows of the ring buffer: a power of two, at least two rows of MCUs. Columns begin with the first wanted MCU.
  int64_t ring;
  uint8_t *plane;
  int64_t stride, left;
  uint8_t *line;  // an upsampled row

  const uint8_t *row(int64_t y) const { return plane + (y & (ring - 1)) * stride - left; }
  // The component's columns that the image's columns [x0, x1) need.
  void needs(int64_t x0, int64_t x1, int64_t *from, int64_t *to) const {
    bool neighbours = upsampling == H2 || upsampling == H2V2;
    *from = std::max<int64_t>(0, x0 / times_x - neighbours);
    *to = std::min(columns, (x1 - 1) / times_x + 1 + neighbours);
  }
  bool has_far_row() const { return upsampling == V2 || upsampling == H2V2; }
  int64_t near_row(int64_t y) const { return std::min<int64_t>((uint32_t)y / (uint32_t)times_y, rows - 1); }
  int64_t far_row(int64_t y) const {
    int64_t far = y / 2 + (y % 2 ? 1 : -1);
    return std::clamp<int64_t>(far, 0, rows - 1);
  }
  int64_t first_row(int64_t y) const { return has_far_row() ? std::min(near_row(y), far_row(y)) : near_row(y); }
  int64_t last_row(int64_t y) const { return has_far_row() ? std::max(near_row(y), far_row(y)) : near_row(y); }
};

struct Picture {
  Component components[kMostComponents];
  int n_components;
  int64_t first_mcu, end_mcu;  // the wanted MCUs of each row
  PixelRows out;
  J_COLOR_SPACE stored, asked;
};

// Where the blocks of an MCU go.
struct Target {
  bool wanted;
  InverseDct inverse_dct;
  const uint16_t *quantisers;
  uint8_t *out;
  int64_t stride, step;
  int size;
};

INLINE void fill_flat(const Target &t, int16_t dc) {
  const uint64_t samples = flat_sample(dc, t.quantisers[0]) * 0x0101010101010101u;
  if (t.size == 8)
    for (int y = 0; y < 8; y++) memcpy(t.out + y * t.stride, &samples, 8);
  else
    for (int y = 0; y < 4; y++) memcpy(t.out + y * t.stride, &samples, 4);
}

bool describe(Component &c, const jpeg_decompress_struct &d, const jpeg_component_info &info, bool interleaved) {
  const int least = min_dct_size(d);
  c.size = dct_size(info);
  c.width = interleaved ? info.h_samp_factor : 1;
  c.height = interleaved ? info.v_samp_factor : 1;
  c.columns = info.downsampled_width;
  c.rows = info.downsampled_height;
  c.mcu_columns = c.width * c.size;
  c.mcu_rows = c.height * c.size;
  int group_x = info.h_samp_factor * c.size / least, group_y = info.v_samp_factor * c.size / least;
  if (c.size != 1 && c.size != 2 && c.size != 4 && c.size != 8) return false;
  if (d.max_h_samp_factor % group_x || d.max_v_samp_factor % group_y) return false;
  c.times_x = d.max_h_samp_factor / group_x;
  c.times_y = d.max_v_samp_factor / group_y;
  bool fancy = d.do_fancy_upsampling && least > 1, wide = c.columns > 2;
  c.upsampling = c.times_x == 1 && c.times_y == 1                    ? AS_IS
                 : fancy && wide && c.times_x == 2 && c.times_y == 1 ? H2
                 : fancy && c.times_x == 1 && c.times_y == 2         ? V2
                 : fancy && wide && c.times_x == 2 && c.times_y == 2 ? H2V2
                                                                     : REPEAT;
  if (info.quant_tbl_no < 0 || info.quant_tbl_no >= NUM_QUANT_TBLS || !d.quant_tbl_ptrs[info.quant_tbl_no])
    return false;
  c.quantisers = d.quant_tbl_ptrs[info.quant_tbl_no]->quantval;
  c.inverse_dct = inverse_dct(c.size);
  return true;
}

// The number of components needed for the wanted colours; 0: leave the file to libjpeg.
int needed_components(const jpeg_decompress_struct &d) {
  J_COLOR_SPACE from = d.jpeg_color_space, to = d.out_color_space;
  if (to == JCS_GRAYSCALE) return from == JCS_GRAYSCALE || from == JCS_YCbCr ? 1 : 0;
  if (to != JCS_RGB && to != JCS_EXT_BGR) return 0;
  return from == JCS_GRAYSCALE ? 1 : (from == JCS_YCbCr || from == JCS_RGB) && d.num_components == 3 ? 3 : 0;
}

bool describe(Picture &p, const jpeg_decompress_struct &d, const PixelRows &out, Scratch &scratch) {
  if (jpeg_level() == LIBJPEG_ONLY || d.dct_method != JDCT_ISLOW || d.num_components > kMostComponents) return false;
  int needed = needed_components(d);
  if (needed == 0) return false;
  p.n_components = d.num_components;
  p.out = out;
  p.stored = d.jpeg_color_space;
  p.asked = d.out_color_space;
  p.first_mcu = INT64_MAX;
  p.end_mcu = 0;
  const Window &w = out.want;
  for (int i = 0; i < p.n_components; i++) {
    Component &c = p.components[i];
    if (!describe(c, d, d.comp_info[i], p.n_components > 1)) return false;
    c.wanted = i < needed;
    if (!c.wanted) continue;
    int64_t from, to;
    c.needs(w.x, w.x + w.width, &from, &to);
    p.first_mcu = std::min(p.first_mcu, from / c.mcu_columns);
    p.end_mcu = std::max(p.end_mcu, (to - 1) / c.mcu_columns + 1);
  }
  // Neighbours of the first and last sample may be read, used or not.
  constexpr int64_t margin = 64;
  int64_t bytes = 0;
  auto place = [&](int64_t n) {
    int64_t at = bytes;
    bytes += (n + 63) / 64 * 64;
    return at;
  };
  int64_t planes[kMostComponents], lines[kMostComponents];
  for (int i = 0; i < needed; i++) {
    Component &c = p.components[i];
    c.stride = (p.end_mcu - p.first_mcu) * c.mcu_columns + 2 * margin;
    c.left = p.first_mcu * c.mcu_columns;
    for (c.ring = 2; c.ring < 2 * c.mcu_rows;) c.ring *= 2;
    planes[i] = place(c.ring * c.stride) + margin;
    lines[i] = place((w.width + 2) + 2 * c.times_x);
  }
  uint8_t *memory = scratch.array<uint8_t>(bytes, 1);
  for (int i = 0; i < needed; i++) p.components[i].plane = memory + planes[i], p.components[i].line = memory + lines[i];
  return true;
}

// Decodes one row of MCUs. Wanted blocks are written one block late, so that the inverse DCT of one runs in parallel
// with the chain of look-ups of the next.
CLONES bool decode_row(Scan &scan, int64_t first, int64_t end, Target *targets, int16_t *blocks) {
  Bits bits = scan.bits;
  int16_t *block = blocks, *other = blocks + kBlockRoom;
  InverseDct pending = nullptr;
  const uint16_t *quantisers = nullptr;
  uint8_t *out = nullptr;
  int64_t stride = 0;
  for (int64_t mcu = 0; mcu < scan.mcus_per_row; mcu++) {
    if (!scan.next_mcu(bits)) return false;
    bool wanted = mcu >= first && mcu < end;
    for (int i = 0; i < scan.n_blocks; i++) {
      Target &t = targets[i];
      if (!wanted || !t.wanted) {
        if (!scan.skip_block(bits, scan.blocks[i])) return false;
        continue;
      }
      const Outcome outcome = scan.read_block(bits, scan.blocks[i], block);
      if (outcome == IRREGULAR) return false;
      if (outcome == FLAT && t.size >= 4) {
        fill_flat(t, block[0]);
        block[0] = 0;
        t.out += t.step;
        continue;
      }
      if (pending) pending(other, quantisers, out, stride);
      pending = t.inverse_dct, quantisers = t.quantisers, out = t.out, stride = t.stride;
      t.out += t.step;
      std::swap(block, other);
    }
    if (!scan.within(bits)) return false;
  }
  if (pending) pending(other, quantisers, out, stride);
  scan.bits = bits;
  return true;
}

// The samples of a component for row y and columns from x0 of the image.
const uint8_t *upsampled(const Component &c, int64_t y, int64_t x0, int64_t x1) {
  const uint8_t *near = c.row(c.near_row(y));
  if (c.upsampling == AS_IS) return near + x0;
  int64_t from = x0 / c.times_x, n = (x1 - 1) / c.times_x + 1 - from;
  const uint8_t *far = c.has_far_row() ? c.row(c.far_row(y)) : nullptr;
  switch (c.upsampling) {
    case H2:
      upsample_h2(near + from, n, c.line);
      break;
    case V2:
      upsample_v2(near + from, far + from, y % 2 == 0, n, c.line);
      break;
    case H2V2:
      upsample_h2v2(near + from, far + from, n, c.line);
      break;
    default:
      upsample_repeat(near + from, n, c.times_x, c.line);
  }
  return c.line + (x0 - from * c.times_x);
}

void write_row(const Picture &p, int64_t y) {
  const Window &w = p.out.want;
  uint8_t *out = p.out.data + (y - w.y) * p.out.stride;
  const uint8_t *rows[3] = {};
  for (int i = 0; i < 3 && i < p.n_components; i++)
    if (p.components[i].wanted) rows[i] = upsampled(p.components[i], y, w.x, w.x + w.width);
  bool blue_first = p.asked == JCS_EXT_BGR;
  if (p.asked == JCS_GRAYSCALE)
    memcpy(out, rows[0], w.width);
  else if (p.stored == JCS_GRAYSCALE)
    interleave(rows[0], rows[0], rows[0], w.width, out);
  else if (p.stored == JCS_RGB)
    interleave(rows[blue_first ? 2 : 0], rows[1], rows[blue_first ? 0 : 2], w.width, out);
  else
    ycc_to_rgb(rows[0], rows[1], rows[2], w.width, blue_first, out);
}

// Samples at the rim are their own neighbours.
void repeat_rim(const Component &c, int64_t mcu_row) {
  if (c.upsampling != H2 && c.upsampling != H2V2) return;
  int64_t from = mcu_row * c.mcu_rows, to = std::min(c.rows, from + c.mcu_rows);
  bool whole = c.columns - c.left <= c.stride - 128;
  for (int64_t y = from; y < to; y++) {
    auto *row = const_cast<uint8_t *>(c.row(y));
    if (c.left == 0) row[-1] = row[0];
    if (whole) row[c.columns] = row[c.columns - 1];
  }
}

// Whether there are unwanted blocks before the last wanted one.
bool reads_over(const Picture &p, int64_t first_row) {
  if (first_row > 0 || p.first_mcu > 0) return true;
  for (int i = 0; i < p.n_components; i++) {
    const Component &c = p.components[i];
    if (!c.wanted || p.end_mcu * c.mcu_columns < c.columns) return true;
  }
  return false;
}

}  // namespace

bool decode_baseline(const jpeg_decompress_struct &d, Bytes in, const PixelRows &out, Scratch &scratch) {
  Picture p;
  Scan scan;
  if (!describe(p, d, out, scratch)) return false;
  const int64_t end = out.want.y + out.want.height;
  int64_t y = out.want.y, first_row = INT64_MAX;
  for (int i = 0; i < p.n_components; i++)
    if (const Component &c = p.components[i]; c.wanted) first_row = std::min(first_row, c.first_row(y) / c.mcu_rows);
  if (!scan.begin(d, in, reads_over(p, first_row), scratch)) return false;
  alignas(64) int16_t blocks[2 * kBlockRoom] = {};
  for (int64_t mcu_row = 0; y < end; mcu_row++) {
    if (mcu_row == scan.mcu_rows) fail("[internal error] JPEG: row %lld is in no MCU", (long long)y);
    Target targets[D_MAX_BLOCKS_IN_MCU];
    for (int i = 0; i < scan.n_blocks; i++) {
      const Scan::Block &b = scan.blocks[i];
      const Component &c = p.components[b.component];
      targets[i].wanted = c.wanted && mcu_row >= first_row;
      if (!targets[i].wanted) continue;
      int64_t at = mcu_row * c.mcu_rows + b.y * c.size;
      auto *to = const_cast<uint8_t *>(c.row(at)) + c.left + b.x * c.size;
      targets[i] = {true, c.inverse_dct, c.quantisers, to, c.stride, c.mcu_columns, c.size};
    }
    if (!decode_row(scan, p.first_mcu, p.end_mcu, targets, blocks)) return false;
    if (mcu_row < first_row) continue;
    int64_t ready = end;
    for (int i = 0; i < p.n_components; i++)
      if (p.components[i].wanted) repeat_rim(p.components[i], mcu_row);
    auto is_ready = [&](int64_t row) {
      for (int i = 0; i < p.n_components; i++)
        if (const Component &c = p.components[i]; c.wanted && c.last_row(row) >= (mcu_row + 1) * c.mcu_rows)
          return false;
      return true;
    };
    for (; y < ready && is_ready(y); y++) write_row(p, y);
  }
  return true;
}
