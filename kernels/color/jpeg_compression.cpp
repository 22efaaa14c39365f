// SPDX-License-Identifier: Apache-2.0
// Encoded by libjpeg-turbo, decoded like a file.
#include "color/jpeg_compression.h"

#include <csetjmp>
#include <memory>

#include "decode/codec.h"
#include "decode/libjpeg.h"

namespace {

// Plain data: libjpeg reports errors by longjmp, which runs no destructors.
struct Encoder {
  jpeg_compress_struct c;
  jpeg_error_mgr errors;
  jmp_buf failed;
  char text[JMSG_LENGTH_MAX];
  unsigned char *data;
  unsigned long size;
};

void give_up(j_common_ptr c) {
  Encoder &e = *static_cast<Encoder *>(c->client_data);
  e.errors.format_message(c, e.text);
  longjmp(e.failed, 1);
}

void print_nothing(j_common_ptr) {}

// Chroma has half the resolution, as usual for photographs. Returns false on failure.
bool encode(Encoder &e, const uint8_t *rgb, int64_t height, int64_t width, int quality) {
  e.c.err = jpeg_std_error(&e.errors);
  e.errors.error_exit = give_up;
  e.errors.output_message = print_nothing;
  e.c.client_data = &e;
  if (setjmp(e.failed)) {
    jpeg_destroy_compress(&e.c);
    return false;
  }
  jpeg_create_compress(&e.c);
  jpeg_mem_dest(&e.c, &e.data, &e.size);
  e.c.image_width = (JDIMENSION)width;
  e.c.image_height = (JDIMENSION)height;
  e.c.input_components = 3;
  e.c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&e.c);
  jpeg_set_quality(&e.c, quality, TRUE);
  jpeg_start_compress(&e.c, TRUE);
  while (e.c.next_scanline < e.c.image_height) {
    JSAMPROW rows[16];
    const int n = e.c.image_height - e.c.next_scanline < 16 ? (int)(e.c.image_height - e.c.next_scanline) : 16;
    for (int i = 0; i < n; i++) rows[i] = const_cast<uint8_t *>(rgb) + (e.c.next_scanline + i) * width * 3;
    jpeg_write_scanlines(&e.c, rows, n);
  }
  jpeg_finish_compress(&e.c);
  jpeg_destroy_compress(&e.c);
  return true;
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const JpegCompressionArgs &a, Scratch &scratch) {
  if (in->volume() == 0 || out->volume() == 0) return;
  const int64_t height = in->shape[0], width = in->shape[1];
  auto e = std::make_unique<Encoder>();
  e->data = nullptr, e->size = 0, e->text[0] = 0;
  const bool done = encode(*e, in->as<uint8_t>(), height, width, a.quality);
  const std::unique_ptr<unsigned char, void (*)(void *)> keep(e->data, std::free);
  if (!done) fail("JPEG: %s", e->text);
  DecodeArgs d{};
  d.y = a.y, d.x = a.x, d.format = FORMAT_JPEG, d.height = (int32_t)height, d.width = (int32_t)width;
  d.orientation = 1, d.output_type = RGB, d.scale_denom = 1, d.fancy_upsampling = 1;
  decode_jpeg(Bytes{e->data, (int64_t)e->size}, d, *out, scratch);
}

EXPORT_KERNEL(jpeg_compression, JpegCompressionArgs, run)
