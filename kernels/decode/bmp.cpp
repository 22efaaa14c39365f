// SPDX-License-Identifier: Apache-2.0
// Windows bitmaps: 1, 4, 8 (plain or run-length encoded), 16, 24 and 32 bits per pixel, bottom-up or top-down.
#include <algorithm>

#include "decode/codec.h"

namespace {

enum Compression { PLAIN, RLE8, RLE4, BITFIELDS, ALPHABITFIELDS = 6 };

struct Header {
  int64_t height, width, row_bytes, pixels;
  int bits, compression, channels;
  bool top_down, gray;
  uint32_t mask[4];  // red, green, blue, alpha
  uint8_t palette[256][3];
  int n_colours;
  bool coded() const { return compression == RLE8 || compression == RLE4; }
  int64_t least_bytes() const { return pixels + row_bytes * height; }  // unless run-length coded
};

void read_palette(Bytes in, Header &h, int64_t at, int entry, int64_t n) {
  h.n_colours = (int)std::min<int64_t>(n, 1 << h.bits);
  h.gray = true;
  for (int i = 0; i < h.n_colours; i++) {
    const uint8_t *bgr = in.need(at + (int64_t)i * entry, 3);
    for (int c = 0; c < 3; c++) h.palette[i][c] = bgr[2 - c];
    h.gray = h.gray && bgr[0] == bgr[1] && bgr[1] == bgr[2];
  }
  h.channels = h.gray ? 1 : 3;
}

Header parse(Bytes in) {
  Header h{};
  h.pixels = in.le32(10);
  int64_t size = in.le32(14), colours = 0;
  bool core = size == 12;
  if (core) {
    h.width = in.le16(18);
    h.height = in.le16(20);
    h.bits = in.le16(24);
  } else if (size >= 40) {
    h.width = (int32_t)in.le32(18);
    h.height = (int32_t)in.le32(22);
    h.bits = in.le16(28);
    h.compression = in.le32(30);
    colours = in.le32(46);
  } else {
    fail("BMP: a header of %lld bytes is not supported", (long long)size);
  }
  h.top_down = h.height < 0;
  if (h.top_down) h.height = -h.height;
  check_extent("BMP", h.height, h.width);
  bool coded = h.compression == RLE8 && h.bits == 8 || h.compression == RLE4 && h.bits == 4;
  bool masked = (h.compression == BITFIELDS || h.compression == ALPHABITFIELDS) && (h.bits == 16 || h.bits == 32);
  if (h.bits != 1 && h.bits != 4 && h.bits != 8 && h.bits != 16 && h.bits != 24 && h.bits != 32 ||
      h.compression != PLAIN && !coded && !masked)
    fail("BMP: %d bits per pixel with compression %d is not supported", h.bits, h.compression);
  h.row_bytes = (h.width * h.bits + 31) / 32 * 4;
  h.channels = 3;
  if (h.bits <= 8) {
    read_palette(in, h, 14 + size, core ? 3 : 4, colours ? colours : 1 << h.bits);
  } else if (masked) {
    bool alpha = h.compression == ALPHABITFIELDS || size >= 56;
    for (int c = 0; c < (alpha ? 4 : 3); c++) h.mask[c] = in.le32(54 + 4 * c);
  } else if (h.bits == 16) {
    h.mask[0] = 0x7c00, h.mask[1] = 0x3e0, h.mask[2] = 0x1f;
  } else {
    h.mask[0] = 0xff0000, h.mask[1] = 0xff00, h.mask[2] = 0xff;
    if (h.bits == 32) h.mask[3] = 0xff000000;
  }
  if (h.mask[3]) h.channels = 4;
  return h;
}

// A contiguous field of a pixel, stretched to 0..255.
struct Field {
  int shift;
  uint32_t top;
  explicit Field(uint32_t mask) : shift(mask ? __builtin_ctz(mask) : 0), top(mask >> shift) {}
  uint8_t operator()(uint32_t pixel) const {
    return top == 255 ? (uint8_t)(pixel >> shift)
           : top      ? (uint8_t)(((uint64_t)(pixel >> shift & top) * 255 + top / 2) / top)
                      : 0;
  }
};

void read_fields(const uint8_t *row, const Header &h, uint8_t *out) {
  Field field[4] = {Field(h.mask[0]), Field(h.mask[1]), Field(h.mask[2]), Field(h.mask[3])};
  int bytes = h.bits / 8;
  for (int64_t x = 0; x < h.width; x++, row += bytes, out += h.channels) {
    uint32_t pixel = row[0] | row[1] << 8;
    if (bytes > 2) pixel |= (uint32_t)row[2] << 16;
    if (bytes > 3) pixel |= (uint32_t)row[3] << 24;
    for (int c = 0; c < h.channels; c++) out[c] = field[c](pixel);
  }
}

void put_colour(const Header &h, int index, uint8_t *out) {
  if (index < h.n_colours)
    memcpy(out, h.palette[index], h.channels);
  else
    memset(out, 0, h.channels);  // as DALI and browsers do
}

// Runs of (count, colour), and after a zero: end of line, end of image, a jump, or that many literal colours.
void read_runs(Bytes in, const Header &h, uint8_t *out) {
  int64_t at = h.pixels, x = 0, y = 0;
  auto put = [&](int index) {
    if (x >= h.width || y >= h.height) fail("BMP: a run leaves the image");
    put_colour(h, index, out + ((h.top_down ? y : h.height - 1 - y) * h.width + x++) * h.channels);
  };
  for (;;) {
    int n = in.u8(at), code = in.u8(at + 1);
    at += 2;
    if (n) {
      for (int i = 0; i < n; i++) put(h.bits == 8 ? code : i & 1 ? code & 15 : code >> 4);
    } else if (code == 0) {
      x = 0;
      y++;
    } else if (code == 1) {
      return;
    } else if (code == 2) {
      x += in.u8(at);
      y += in.u8(at + 1);
      at += 2;
    } else {
      for (int i = 0; i < code; i++) {
        int byte = in.u8(at + (h.bits == 8 ? i : i / 2));
        put(h.bits == 8 ? byte : i & 1 ? byte & 15 : byte >> 4);
      }
      at += ((h.bits == 8 ? code : (code + 1) / 2) + 1) / 2 * 2;
    }
    if (y >= h.height && !(in.has(at, 2) && in.data[at] == 0 && in.data[at + 1] == 1)) return;
  }
}

}  // namespace

ImageInfo peek_bmp(Bytes in) {
  Header h = parse(in);
  return {FORMAT_BMP, (int32_t)h.height, (int32_t)h.width, h.channels, 8, 1, h.coded() ? 0 : h.least_bytes(), 0};
}

void decode_bmp(Bytes in, Canvas &canvas) {
  Header h = parse(in);
  if (!h.coded() && in.size < h.least_bytes())
    fail("BMP: truncated: %lld x %lld pixels of %d bits need %lld bytes, the file has %lld", (long long)h.height,
         (long long)h.width, h.bits, (long long)h.least_bytes(), (long long)in.size);
  auto *out = static_cast<uint8_t *>(canvas.begin(h.height, h.width, h.channels, UINT8));
  if (h.coded()) {
    // Jumps leave pixels unwritten: they get the first colour.
    for (int64_t i = 0; i < h.height * h.width; i++) put_colour(h, 0, out + i * h.channels);
    return read_runs(in, h, out);
  }
  for (int64_t y = 0; y < h.height; y++, out += h.width * h.channels) {
    const uint8_t *row = in.data + h.pixels + (h.top_down ? y : h.height - 1 - y) * h.row_bytes;
    if (h.bits > 8) {
      read_fields(row, h, out);
    } else {
      int per_byte = 8 / h.bits, mask = (1 << h.bits) - 1;
      for (int64_t x = 0; x < h.width; x++)
        put_colour(h, row[x / per_byte] >> (per_byte - 1 - x % per_byte) * h.bits & mask, out + x * h.channels);
    }
  }
}
