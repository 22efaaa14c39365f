// SPDX-License-Identifier: Apache-2.0
// PNG through libpng: palettes become RGB, grey below 8 bits becomes 8, transparency by colour (tRNS) is ignored.
#include <png.h>

#include <algorithm>
#include <csetjmp>

#include "decode/codec.h"

ImageInfo peek_png(Bytes in) {
  ImageInfo info{FORMAT_PNG, 0, 0, 0, 0, 1, 0, 0};
  if (!in.starts(12, "IHDR", 4)) fail("PNG: the first chunk is not IHDR");
  uint32_t width = in.be32(16), height = in.be32(20);
  check_extent("PNG", height, width);
  info.width = (int32_t)width;
  info.height = (int32_t)height;
  info.depth = in.u8(24);
  int colour = in.u8(25);
  constexpr int channels[] = {1, 0, 3, 3, 2, 0, 4};
  if (colour > 6 || !channels[colour]) fail("PNG: colour type %d", colour);
  info.channels = channels[colour];
  // Deflate expands by at most 1032.
  int64_t bits = colour == 3 ? info.depth : info.depth * info.channels;
  info.least_bytes = (int64_t)height * ((width * bits + 7) / 8) / 1032;
  if (colour == 3) info.depth = 8;
  // EXIF may come before or after the pixels. Truncated files are reported by the decoder.
  for (int64_t at = 8; in.has(at, 12); at += 12 + (int64_t)in.be32(at)) {
    if (in.starts(at + 4, "eXIf", 4) && in.has(at + 8, in.be32(at))) {
      info.orientation = exif_orientation(in.part(at + 8, in.be32(at)));
      break;
    }
  }
  return info;
}

namespace {

// Plain data: libpng reports errors by longjmp, which runs no destructors.
struct Reader {
  Bytes in;
  int64_t at;
  jmp_buf failed;
  char text[128];
};

void give_up(png_structp png, png_const_charp text) {
  Reader &r = *static_cast<Reader *>(png_get_error_ptr(png));
  snprintf(r.text, sizeof r.text, "%s", text);
  longjmp(r.failed, 1);
}
void ignore(png_structp, png_const_charp) {}

void read(png_structp png, png_bytep to, size_t n) {
  Reader &r = *static_cast<Reader *>(png_get_io_ptr(png));
  if (!r.in.has(r.at, (int64_t)n)) png_error(png, "the file ends before its pixels do");
  memcpy(to, r.in.data + r.at, n);
  r.at += (int64_t)n;
}

void decode(png_structp png, png_infop info, Canvas &canvas) {
  png_read_info(png, info);
  int colour = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
  if (colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(png);
    png_set_strip_alpha(png);
  } else if (depth < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (depth == 16) png_set_swap(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info),
          channels = png_get_channels(png, info);
  int64_t row = width * channels * (depth == 16 ? 2 : 1);
  auto *pixels = static_cast<uint8_t *>(canvas.begin(height, width, channels, depth == 16 ? UINT16 : UINT8));
  if ((int64_t)png_get_rowbytes(png, info) != row) fail("[internal error] libpng delivers rows of another size");
  // Interlaced passes add to what earlier passes wrote.
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < height; y++) png_read_row(png, pixels + y * row, nullptr);
  png_read_end(png, nullptr);
}

}  // namespace

void decode_png(Bytes in, Canvas &canvas) {
  Reader r;
  r.in = in;
  r.at = 0;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, give_up, ignore);
  if (!png) throw std::bad_alloc();
  png_infop info = png_create_info_struct(png);
  if (setjmp(r.failed)) {
    png_destroy_read_struct(&png, &info, nullptr);
    fail("PNG: %s", r.text);
  }
  try {
    if (!info) throw std::bad_alloc();
    png_set_read_fn(png, &r, read);
    png_set_user_limits(png, INT32_MAX, INT32_MAX);  // the extent was checked against the caller's limit
    // Texts and colour profiles are not needed, and unpacking them takes time and has had errors (CVE-2026-46675).
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    decode(png, info, canvas);
  } catch (...) {
    png_destroy_read_struct(&png, &info, nullptr);
    throw;
  }
  png_destroy_read_struct(&png, &info, nullptr);
}
