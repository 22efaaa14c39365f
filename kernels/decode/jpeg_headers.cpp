// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_headers.h"

#include <algorithm>
#include <cstring>

namespace {

JpegHeaders &headers_of(j_common_ptr d) { return *static_cast<JpegHeaders *>(d->client_data); }
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

// The blocks of n samples that upsampling to [at, at + length) of `image` pixels reads, where a sample covers max /
// factor pixels; neighbouring samples included.
void block_range(int64_t at, int64_t length, int factor, int max, int64_t n, int32_t *first, int32_t *count) {
  const int64_t lo = std::max<int64_t>(at * factor / max - 1, 0),
                hi = std::min<int64_t>((at + length - 1) * factor / max + 1, n - 1);
  *first = (int32_t)(lo / 8);
  *count = (int32_t)(hi / 8 + 1 - lo / 8);
}

}  // namespace

void begin_headers(JpegHeaders &j, Bytes in) {
  memset(&j.d, 0, sizeof j.d);
  j.d.err = jpeg_std_error(&j.errors);
  j.errors.error_exit = give_up;
  j.errors.emit_message = warn;
  j.errors.output_message = print_nothing;
  j.d.client_data = &j;
  j.source = {in.data, (size_t)in.size, no_source, end_of_source, skip_source, jpeg_resync_to_restart, no_source};
}

bool read_headers(JpegHeaders &j, int64_t height, int64_t width) {
  jpeg_create_decompress(&j.d);
  j.d.src = &j.source;
  jpeg_read_header(&j.d, TRUE);
  return (int64_t)j.d.image_height == height && (int64_t)j.d.image_width == width && is_supported(j.d);
}

void describe_picture(JpegRecord &r, const jpeg_decompress_struct &d, const Window &w, bool gray) {
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
  r.n_places = r.n_blocks;
  r.mcu_blocks = r.mcus_per_row = 0;
}
