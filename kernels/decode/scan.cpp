// SPDX-License-Identifier: Apache-2.0
#include "decode/scan.h"

namespace {

// An MCU takes at most 10 blocks of 64 symbols of 31 bits: zeros after the data allow overrunning it before that is
// noticed.
constexpr int64_t kSlack = 10 * 64 * 4 + 64;

}  // namespace

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

void Scan::start_interval(const uint8_t *begin, const uint8_t *interval_end) {
  bits = {0, 0, begin};
  end = interval_end;
  memset(last_dc, 0, sizeof last_dc);
}

bool Scan::next_interval() {
  if (intervals_left-- == 0) return false;
  const uint8_t *begin = end;
  uint32_t length = interval_ends[1] - interval_ends[0];
  interval_ends++;
  mcus_to_restart = restart_interval;
  start_interval(begin, begin + length);
  return true;
}

bool Scan::begin(const jpeg_decompress_struct &d, Bytes in, bool skips, Scratch &scratch) {
  if (d.progressive_mode || d.arith_code || d.data_precision != 8 || d.comps_in_scan != d.num_components) return false;
  if (d.Ss != 0 || d.Se != 63 || d.Ah != 0 || d.Al != 0 || d.unread_marker != 0) return false;
  if (d.comps_in_scan < 1 || d.comps_in_scan > kMostComponents) return false;

  const bool interleaved = d.comps_in_scan > 1;
  unsigned seen = 0;
  n_blocks = 0;
  for (int i = 0; i < d.comps_in_scan; i++) {
    const jpeg_component_info &c = *d.cur_comp_info[i];
    if (seen >> c.component_index & 1) return false;
    seen |= 1u << c.component_index;
    if (c.dc_tbl_no < 0 || c.dc_tbl_no > 3 || c.ac_tbl_no < 0 || c.ac_tbl_no > 3) return false;
    const JHUFF_TBL *dc = d.dc_huff_tbl_ptrs[c.dc_tbl_no], *ac = d.ac_huff_tbl_ptrs[c.ac_tbl_no];
    if (!dc || !ac) return false;
    const DcTable *dc_codes = dc_table(dc->bits, dc->huffval);
    const AcTable *ac_codes = ac_table(ac->bits, ac->huffval, skips);
    if (!dc_codes || !ac_codes) return false;
    // A scan of one component is not interleaved: its MCUs are single blocks (A.2.2).
    int width = interleaved ? c.h_samp_factor : 1, height = interleaved ? c.v_samp_factor : 1;
    if (n_blocks + width * height > D_MAX_BLOCKS_IN_MCU) return false;
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) blocks[n_blocks++] = {dc_codes, ac_codes, c.component_index, x, y};
  }
  const jpeg_component_info &first = *d.cur_comp_info[0];
  auto mcus = [&](int64_t extent, int most, int own) {
    int64_t step = 8 * most;
    return interleaved ? (extent + step - 1) / step : (extent * own + step - 1) / step;
  };
  mcus_per_row = mcus(d.image_width, d.max_h_samp_factor, first.h_samp_factor);
  mcu_rows = mcus(d.image_height, d.max_v_samp_factor, first.v_samp_factor);

  int64_t n_mcus = mcus_per_row * mcu_rows;
  int64_t n_intervals = d.restart_interval ? (n_mcus + d.restart_interval - 1) / d.restart_interval : 1;
  if (n_mcus < 1 || n_mcus >= INT32_MAX || in.size > UINT32_MAX || n_intervals > in.size) return false;
  int64_t ends_bytes = (n_intervals * 4 + 63) / 64 * 64;
  auto *memory = static_cast<uint8_t *>(scratch.get(ends_bytes + in.size + kSlack, 2));
  auto *ends = reinterpret_cast<uint32_t *>(memory);
  uint8_t *bytes = memory + ends_bytes, *last = nullptr;
  if (unstuff(in, bytes, &last, ends, (int)n_intervals) != n_intervals) return false;
  memset(last, 0, kSlack);
  intervals_left = (int)n_intervals - 1;
  interval_ends = ends;
  restart_interval = (int)d.restart_interval;
  mcus_to_restart = restart_interval ? restart_interval : INT32_MAX;
  start_interval(bytes, bytes + ends[0]);
  return true;
}
