// SPDX-License-Identifier: Apache-2.0
// Lossless JPEG (ITU-T T.81, annex H: SOF3), used for medical images: Huffman-coded differences to a prediction, 2 to
// 16 bits, one scan. libjpeg-turbo supports it only since version 3.
#include <utility>

#include "decode/codec.h"

namespace {

constexpr int kMostComponents = 4;

struct Table {
  uint8_t counts[17], symbols[256];
  bool defined = false;
};

struct File {
  Bytes in;
  int64_t at = 2;
  int bits = 0, height = 0, width = 0, components = 0, restart = 0;
  int ids[kMostComponents], table_of[kMostComponents];
  int predictor = 0, shift = 0;
  Table tables[4];
};

void read_tables(File &f, int64_t at, int64_t end) {
  while (at < end) {
    int which = f.in.u8(at);
    if (which > 3) fail("JPEG: Huffman table %d in a lossless file", which);
    Table &t = f.tables[which];
    int n = 0;
    for (int i = 1; i <= 16; i++) n += t.counts[i] = (uint8_t)f.in.u8(at + i);
    if (n > 256) fail("JPEG: a Huffman table of %d codes", n);
    memcpy(t.symbols, f.in.need(at + 17, n), n);
    t.defined = true;
    at += 17 + n;
  }
}

void read_frame(File &f, int64_t at) {
  f.bits = f.in.u8(at);
  f.height = f.in.be16(at + 1);
  f.width = f.in.be16(at + 3);
  f.components = f.in.u8(at + 5);
  if (f.bits < 2 || f.bits > 16 || f.components < 1 || f.components > kMostComponents || f.components == 2)
    fail("JPEG: lossless with %d components of %d bits", f.components, f.bits);
  for (int c = 0; c < f.components; c++) {
    f.ids[c] = f.in.u8(at + 6 + 3 * c);
    if (f.components > 1 && f.in.u8(at + 7 + 3 * c) != 0x11) fail("JPEG: lossless with subsampling is not supported");
  }
}

void read_scan(File &f, int64_t at) {
  int n = f.in.u8(at);
  if (!f.bits || n != f.components) fail("JPEG: lossless in %d components per scan is not supported", n);
  for (int c = 0; c < n; c++) {
    if ((int)f.in.u8(at + 1 + 2 * c) != f.ids[c]) fail("JPEG: a scan of an unknown component");
    f.table_of[c] = f.in.u8(at + 2 + 2 * c) >> 4;
    if (f.table_of[c] > 3 || !f.tables[f.table_of[c]].defined) fail("JPEG: a Huffman table is missing");
  }
  f.predictor = f.in.u8(at + 1 + 2 * n);
  f.shift = f.in.u8(at + 3 + 2 * n) & 15;
  if (f.predictor < 1 || f.predictor > 7 || f.shift >= f.bits)
    fail("JPEG: lossless with predictor %d, shift %d", f.predictor, f.shift);
}

// Leaves `at` at the first byte of the scan.
void read_headers(File &f) {
  for (;;) {
    while (f.in.u8(f.at) != 0xff || f.in.u8(f.at + 1) == 0xff || f.in.u8(f.at + 1) == 0) f.at++;
    int marker = f.in.u8(f.at + 1);
    f.at += 2;
    if (marker == 0x01 || marker >= 0xd0 && marker <= 0xd8) continue;
    int64_t length = f.in.be16(f.at);
    if (marker == 0xd9 || length < 2) fail("JPEG: the file ends before its pixels");
    f.in.need(f.at, length);
    if (marker == 0xc4) read_tables(f, f.at + 2, f.at + length);
    if (marker == 0xc3) read_frame(f, f.at + 2);
    if (marker == 0xdd) f.restart = f.in.be16(f.at + 2);
    if (marker == 0xda) read_scan(f, f.at + 2);
    f.at += length;
    if (marker == 0xda) return;
  }
}

struct Bits {
  Bytes in;
  int64_t at;
  uint32_t window = 0;
  int held = 0;

  int bit() {
    if (!held) {
      uint32_t byte = at >= in.size ? 0x1ff : in.data[at++];
      if (byte == 0xff && (at >= in.size || in.data[at++] != 0) || byte > 0xff)
        fail("JPEG: Premature end of JPEG file");
      window = byte;
      held = 8;
    }
    return window >> --held & 1;
  }
  int take(int n) {
    int v = 0;
    while (n--) v = v << 1 | bit();
    return v;
  }
  // F.2.2.3: codes of one length are consecutive numbers.
  int symbol(const Table &t) {
    int code = 0, first = 0, place = 0;
    for (int length = 1; length <= 16; length++) {
      code |= bit();
      if (code - first < t.counts[length]) return t.symbols[place + code - first];
      place += t.counts[length];
      first = (first + t.counts[length]) << 1;
      code <<= 1;
    }
    fail("JPEG: Corrupt JPEG data: bad Huffman code");
  }
  // H.1.2.2
  int difference(const Table &t) {
    int size = symbol(t);
    if (size == 0) return 0;
    if (size == 16) return 32768;
    if (size > 16) fail("JPEG: Corrupt JPEG data: bad Huffman code");
    int v = take(size);
    return v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
  }
  void restart(int number) {
    held = 0;
    if (in.be16(at) != 0xffd0u + (number & 7))
      fail("JPEG: Corrupt JPEG data: restart marker %d is missing", number & 7);
    at += 2;
  }
};

// H.1.2.1: a is to the left, b above, c above to the left.
int predict(int predictor, int a, int b, int c) {
  switch (predictor) {
    case 1:
      return a;
    case 2:
      return b;
    case 3:
      return c;
    case 4:
      return a + b - c;
    case 5:
      return a + ((b - c) >> 1);
    case 6:
      return b + ((a - c) >> 1);
    default:
      return (a + b) >> 1;
  }
}

// Keeps two lines of 16-bit samples; writes them to the image stretched to the full range of T.
template <class T>
void read_lines(File &f, T *out, uint16_t *lines) {
  Bits bits{f.in, f.at};
  const int n = f.components, row = f.width * n;
  const uint32_t top = (1u << f.bits) - 1, full = (T)~0;
  uint16_t *line = lines, *above = lines + row;
  int rows_to_restart = f.restart / f.width, restarts = 0;
  if (f.restart % f.width) fail("JPEG: lossless with restarts within lines is not supported");
  bool fresh = true;  // no line above: at the start and after a restart
  for (int y = 0; y < f.height; y++, out += row) {
    if (f.restart && y && y % rows_to_restart == 0) {
      bits.restart(restarts++);
      fresh = true;
    }
    for (int x = 0; x < f.width; x++)
      for (int c = 0; c < n; c++) {
        int i = x * n + c;
        int guess = fresh ? (x ? line[i - n] : 1 << (f.bits - f.shift - 1))
                    : x   ? predict(f.predictor, line[i - n], above[i], above[i - n])
                          : above[i];
        line[i] = (uint16_t)(guess + bits.difference(f.tables[f.table_of[c]]));
        uint32_t v = (uint32_t)line[i] << f.shift & top;
        out[i] = (T)(top == full ? v : (v * full + top / 2) / top);
      }
    std::swap(line, above);
    fresh = false;
  }
}

}  // namespace

void decode_jpeg_lossless(Bytes in, Canvas &canvas) {
  File f;
  f.in = in;
  read_headers(f);
  int dtype = f.bits <= 8 ? UINT8 : UINT16;
  void *out = canvas.begin(f.height, f.width, f.components, dtype);
  auto *lines = canvas.scratch().array<uint16_t>(2ll * f.width * f.components, 1);
  if (dtype == UINT8)
    read_lines(f, static_cast<uint8_t *>(out), lines);
  else
    read_lines(f, static_cast<uint16_t *>(out), lines);
}
