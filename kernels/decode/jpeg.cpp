// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo's scanline interface: only the wanted window is transformed, and rows go directly into the
// output. Pixels equal those of libjpeg's accurate integer DCT.
#include <algorithm>
#include <csetjmp>

#include "decode/baseline.h"
#include "decode/codec.h"
#include "decode/libjpeg.h"
// Message codes, to tell harmless warnings from lost data.
#include <jerror.h>

// Whether the frame header at `at` (after its length) declares 8-bit YCbCr with chroma at full or half resolution.
static bool has_usual_components(Bytes in, int64_t at) {
  const int h = in.u8(at + 7) >> 4, v = in.u8(at + 7) & 15;
  const bool is_rgb = in.u8(at + 6) == 'R' && in.u8(at + 9) == 'G' && in.u8(at + 12) == 'B';
  return in.u8(at + 5) == 3 && h >= 1 && h <= 2 && v >= 1 && v <= 2 && in.u8(at + 10) == 0x11 &&
         in.u8(at + 13) == 0x11 && !is_rgb;
}

ImageInfo peek_jpeg(Bytes in) {
  ImageInfo info{FORMAT_JPEG, 0, 0, 0, 0, 1, 0, 0};
  bool is_rgb = false;
  for (int64_t at = 2;;) {
    // Like libjpeg, skips bytes that are no marker, and fill bytes.
    while (in.u8(at) != 0xff || in.u8(at + 1) == 0xff || in.u8(at + 1) == 0) at++;
    int marker = in.u8(at + 1);
    at += 2;
    if (marker == 0x01 || marker >= 0xd0 && marker <= 0xd8) continue;
    if (marker == 0xd9) fail("JPEG: the file ends before its frame header");
    if (marker == 0xda) fail("JPEG: a scan begins before the frame header");
    int64_t length = in.be16(at);
    if (length < 2) fail("JPEG: segment length %d at byte %lld", (int)length, (long long)at);
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      bool lossless = marker == 0xc3;
      if (marker > 0xc3 && marker != 0xc9 && marker != 0xca)
        fail("JPEG: %s coding (SOF%d) is not supported", marker == 0xcb ? "lossless arithmetic" : "hierarchical",
             marker - 0xc0);
      if (lossless) info.format = FORMAT_JPEG_LOSSLESS;
      info.depth = in.u8(at + 2);
      info.height = in.be16(at + 3);
      info.width = in.be16(at + 5);
      info.channels = in.u8(at + 7);
      if (info.depth != 8 && !lossless) fail("JPEG: %d bits per sample, supported are 8", info.depth);
      if (info.channels != 1 && info.channels != 3 && info.channels != 4)
        fail("JPEG: %d components, supported are 1, 3 and 4", info.channels);
      check_extent("JPEG", info.height, info.width);
      // A Huffman code has at least one bit; each block of 8 x 8 pixels has a code, in lossless files each pixel.
      if (marker < 0xc8) info.least_bytes = (int64_t)info.height * info.width / (lossless ? 8 : 512);
      info.plain = marker == 0xc0 && has_usual_components(in, at + 2) && !is_rgb && in.be16(in.size - 2) == 0xffd9;
      return info;
    }
    if (marker == 0xe1 && in.starts(at + 2, "Exif\0", 5) && length >= 8 && in.has(at, length))
      info.orientation = exif_orientation(in.part(at + 8, length - 8));
    // Adobe's marker says whether the colours are transformed.
    if (marker == 0xee && in.starts(at + 2, "Adobe", 5) && length >= 14) is_rgb = in.u8(at + 13) == 0;
    at += length;
  }
}

namespace {

// Scans of a progressive file; each costs a pass over the whole image, so a small file could keep a thread for hours.
constexpr int kMaxScans = 500;

// Plain data: libjpeg reports errors by longjmp, which runs no destructors.
struct Decoder {
  jpeg_decompress_struct d;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  jmp_buf failed;
  char text[JMSG_LENGTH_MAX];
};

Decoder &decoder_of(j_common_ptr d) { return *static_cast<Decoder *>(d->client_data); }

void give_up(j_common_ptr d) {
  Decoder &j = decoder_of(d);
  j.errors.format_message(d, j.text);
  longjmp(j.failed, 1);
}

// A warning about missing pixels is an error. Stray bytes and odd headers are harmless.
void warn(j_common_ptr d, int level) {
  if (level >= 0) return;
  switch (d->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      give_up(d);
  }
}

void count_scans(j_common_ptr d) {
  Decoder &j = decoder_of(d);
  if (j.d.input_scan_number <= kMaxScans) return;
  snprintf(j.text, sizeof j.text, "more than %d scans", kMaxScans);
  longjmp(j.failed, 1);
}

void print_nothing(j_common_ptr) {}
void no_source(j_decompress_ptr) {}
boolean end_of_source(j_decompress_ptr d) {
  WARNMS(d, JWRN_JPEG_EOF);
  return FALSE;
}
void skip_source(j_decompress_ptr d, long n) {
  if (n <= 0) return;
  if ((size_t)n > d->src->bytes_in_buffer) WARNMS(d, JWRN_JPEG_EOF);
  d->src->next_input_byte += n;
  d->src->bytes_in_buffer -= n;
}

// Which rows are wanted, where they go, and how they are converted.
struct Job {
  Window want;     // in the scaled stored image
  uint8_t *rows;   // the first wanted pixel
  int64_t stride;  // from row to row
  bool cmyk_to_rgb;
  bool rgb_to_ycbcr;
  Scratch *scratch;
};

// Whether the end marker exists, so nothing was cut off: cheap for a good file. For when reading stops early.
bool has_end(Decoder &j) {
  if (jpeg_has_multiple_scans(&j.d) || j.d.unread_marker == 0xd9) return true;
  const uint8_t *p = j.source.next_input_byte;
  for (int64_t i = (int64_t)j.source.bytes_in_buffer - 2; i >= 0; i--)
    if (p[i] == 0xff && p[i + 1] == 0xd9) return true;
  return false;
}

void open(Decoder &j, Bytes in) {
  j.d.err = jpeg_std_error(&j.errors);
  j.errors.error_exit = give_up;
  j.errors.emit_message = warn;
  j.errors.output_message = print_nothing;
  j.d.client_data = &j;
  jpeg_create_decompress(&j.d);
  j.source = {in.data, (size_t)in.size, no_source, end_of_source, skip_source, jpeg_resync_to_restart, no_source};
  j.d.src = &j.source;
  j.progress.progress_monitor = count_scans;
  j.d.progress = &j.progress;
  jpeg_read_header(&j.d, TRUE);
}

constexpr int kStrip = 16;

// Reads `n` rows, the first sample going to `to`.
void read_rows(Decoder &j, uint8_t *to, int64_t stride, int64_t n) {
  JSAMPROW rows[kStrip];
  while (n > 0) {
    int m = (int)std::min<int64_t>(n, kStrip);
    for (int i = 0; i < m; i++) rows[i] = to + i * stride;
    m = jpeg_read_scanlines(&j.d, rows, m);
    if (m == 0) fail("[internal error] libjpeg has no more rows");
    to += m * stride;
    n -= m;
  }
}

// Upsampling and DCT blocks of a row of MCUs need their neighbours; with one MCU around the window, pixels equal those
// of a full decode.
void read_window(Decoder &j, const Job &job) {
  const Window &w = job.want;
  int n = j.d.output_components;
  int64_t mcu_y = j.d.max_v_samp_factor * min_dct_size(j.d), mcu_x = j.d.max_h_samp_factor * min_dct_size(j.d);
  JDIMENSION left = 0, width = j.d.output_width;
  if (w.x > 0 || w.width < width) {
    left = (JDIMENSION)std::max<int64_t>(0, w.x / mcu_x * mcu_x - mcu_x);
    width = (JDIMENSION)std::min<int64_t>(width, w.x + w.width + mcu_x) - left;
    jpeg_crop_scanline(&j.d, &left, &width);
  }
  int64_t top = std::max<int64_t>(0, w.y / mcu_y * mcu_y - mcu_y);
  if (top > 0) jpeg_skip_scanlines(&j.d, (JDIMENSION)top);
  bool narrow = left > 0 || width != w.width;
  const int64_t stride = (int64_t)width * n;
  uint8_t *line = job.scratch->array<uint8_t>(kStrip * stride, 1);
  read_rows(j, line, 0, w.y - top);
  if (!narrow && !job.cmyk_to_rgb && !job.rgb_to_ycbcr) {
    read_rows(j, job.rows, job.stride, w.height);
  } else {
    // Several rows at a time: copying a row directly after libjpeg's stores would stall on them.
    for (int64_t r = 0; r < w.height; r += kStrip) {
      int64_t m = std::min<int64_t>(kStrip, w.height - r);
      read_rows(j, line, stride, m);
      for (int64_t k = 0; k < m; k++) {
        uint8_t *to = job.rows + (r + k) * job.stride;
        const uint8_t *from = line + k * stride + (w.x - left) * n;
        if (job.cmyk_to_rgb)
          cmyk_to_rgb(from, w.width, j.d.saw_Adobe_marker, to);
        else if (job.rgb_to_ycbcr)
          rgb_to_ycbcr(from, w.width, to);
        else
          memcpy(to, from, w.width * n);
      }
    }
  }
  if (j.d.output_scanline < j.d.output_height) {
    if (!has_end(j)) fail("JPEG: Premature end of JPEG file");
  } else {
    jpeg_finish_decompress(&j.d);
  }
}

// Chooses the colours libjpeg delivers and, if they are not the wanted ones, an intermediate buffer.
void decode(Decoder &j, const DecodeArgs &a, const Tensor &out, Scratch &scratch, Pixels *between) {
  if ((int64_t)j.d.image_height != a.height || (int64_t)j.d.image_width != a.width)
    fail("JPEG: the decoder sees %u x %u pixels, the header said %d x %d", j.d.image_height, j.d.image_width, a.height,
         a.width);
  bool cmyk = j.d.num_components == 4;
  Job job{};
  job.scratch = &scratch;
  j.d.scale_num = 1;
  j.d.scale_denom = a.scale_denom;
  j.d.do_fancy_upsampling = a.fancy_upsampling;
  j.d.dct_method = a.fast_idct ? JDCT_IFAST : JDCT_ISLOW;
  int64_t height = (a.height + a.scale_denom - 1) / a.scale_denom,
          width = (a.width + a.scale_denom - 1) / a.scale_denom;
  Window oriented{a.y, a.x, out.shape[0], out.shape[1]};
  job.want = stored_window(oriented, a.orientation, height, width);
  bool direct = out.dtype == UINT8 && a.orientation <= 1;
  int channels = (int)out.shape[2];
  if (cmyk) {
    // Grey and YCbCr are made from RGB.
    bool raw = a.output_type == ANY_DATA;
    j.d.out_color_space = JCS_CMYK;
    job.cmyk_to_rgb = !raw;
    direct = direct && (raw || a.output_type == RGB);
    if (!direct) channels = raw ? 4 : 3;
    if (channels != (raw ? 4 : 3)) fail("[internal error] %d channels for 4 components", channels);
  } else {
    bool gray = a.output_type == GRAY || a.output_type == ANY_DATA && j.d.num_components == 1;
    if (gray != (channels == 1) || !gray && channels != 3)
      fail("[internal error] %d channels for %d components", channels, j.d.num_components);
    j.d.out_color_space = gray ? JCS_GRAYSCALE : direct && a.output_type == BGR ? JCS_EXT_BGR : JCS_RGB;
    job.rgb_to_ycbcr = direct && a.output_type == YCBCR;
  }
  job.stride = job.want.width * channels;
  if (direct) {
    job.rows = out.as<uint8_t>();
  } else {
    *between = {scratch.get(job.want.height * job.stride, 0), job.want.height, job.want.width, channels, UINT8};
    job.rows = static_cast<uint8_t *>(between->data);
  }
  jpeg_calc_output_dimensions(&j.d);
  if ((int64_t)j.d.output_height != height || (int64_t)j.d.output_width != width)
    fail("[internal error] libjpeg scales to %u x %u", j.d.output_height, j.d.output_width);
  Bytes scan{j.source.next_input_byte, (int64_t)j.source.bytes_in_buffer};
  if (decode_baseline(j.d, scan, {job.want, job.rows, job.stride}, scratch)) {
    if (job.rgb_to_ycbcr) rgb_to_ycbcr(job.rows, job.want.height * job.want.width, job.rows);
    return;
  }
  jpeg_start_decompress(&j.d);
  read_window(j, job);
}

}  // namespace

void decode_jpeg(Bytes in, const DecodeArgs &a, const Tensor &out, Scratch &scratch) {
  Pixels between{};
  Decoder j;
  if (setjmp(j.failed)) {
    jpeg_destroy_decompress(&j.d);
    fail("JPEG: %s", j.text);
  }
  try {
    open(j, in);
    decode(j, a, out, scratch, &between);
  } catch (...) {
    jpeg_destroy_decompress(&j.d);
    throw;
  }
  jpeg_destroy_decompress(&j.d);
  if (between.data) {
    Window all{0, 0, out.shape[0], out.shape[1]};
    convert_pixels(between, all, a.orientation, a.output_type, out, scratch);
  }
}
