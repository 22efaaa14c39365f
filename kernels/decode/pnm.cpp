// SPDX-License-Identifier: Apache-2.0
// Netpbm's P1 to P6: bitmaps, grey and colour, as text or binary, up to 16 bits. Values are stretched to the full
// range.
#include <algorithm>

#include "decode/codec.h"

namespace {

struct Header {
  int kind;  // 1..6
  int64_t width, height, maximum, channels, pixels;
  bool bitmap() const { return kind == 1 || kind == 4; }
  bool text() const { return kind <= 3; }
  int64_t least_bytes() const {
    int64_t row = kind == 4 ? (width + 7) / 8 : width * channels * (text() || maximum < 256 ? 1 : 2);
    return pixels + row * height;
  }
};

bool is_space(int c) { return c == ' ' || c >= '\t' && c <= '\r'; }

constexpr int kMostDigits = 18;  // digits that always fit in an int64_t

// The next decimal number after white space and comments.
int64_t number(Bytes in, int64_t &at, int most_digits = kMostDigits) {
  for (;; at++) {
    int c = in.u8(at);
    if (c == '#')
      while (in.u8(at) != '\n') at++;
    else if (!is_space(c))
      break;
  }
  int64_t value = 0, begin = at;
  for (; at < in.size && in.data[at] >= '0' && in.data[at] <= '9' && at - begin < most_digits; at++)
    value = value * 10 + in.data[at] - '0';
  if (at == begin) fail("PNM: a number is expected at byte %lld", (long long)at);
  if (at - begin == kMostDigits && at < in.size && in.data[at] >= '0' && in.data[at] <= '9')
    fail("PNM: the number at byte %lld has more than %d digits", (long long)begin, kMostDigits);
  return value;
}

Header parse(Bytes in) {
  Header h{};
  h.kind = in.u8(1) - '0';
  h.channels = h.kind == 3 || h.kind == 6 ? 3 : 1;
  h.pixels = 2;
  h.width = number(in, h.pixels);
  h.height = number(in, h.pixels);
  check_extent("PNM", h.height, h.width);
  h.maximum = h.bitmap() ? 1 : number(in, h.pixels);
  if (h.maximum < 1 || h.maximum > 65535) fail("PNM: the largest value is %lld, not 1..65535", (long long)h.maximum);
  if (!is_space(in.u8(h.pixels))) fail("PNM: white space is expected at byte %lld", (long long)h.pixels);
  h.pixels++;
  return h;
}

template <class T>
void read(Bytes in, const Header &h, T *out) {
  constexpr uint32_t full = (T)~0;
  uint32_t maximum = (uint32_t)h.maximum;
  auto stretch = [&](uint32_t v) {
    return (T)(maximum == full ? v : ((v < maximum ? v : maximum) * full + maximum / 2) / maximum);
  };
  int64_t n = h.height * h.width * h.channels, at = h.pixels;
  const uint8_t *p = in.data + at;
  if (h.kind == 4) {
    int64_t row_bytes = (h.width + 7) / 8;
    for (int64_t y = 0; y < h.height; y++, p += row_bytes)
      for (int64_t x = 0; x < h.width; x++) *out++ = p[x / 8] >> (7 - x % 8) & 1 ? 0 : (T)full;
  } else if (h.kind == 1) {
    // Bits need no space between them.
    for (int64_t i = 0; i < n; i++) out[i] = number(in, at, 1) ? 0 : (T)full;
  } else if (h.text()) {
    for (int64_t i = 0; i < n; i++) out[i] = stretch((uint32_t)std::min(number(in, at), h.maximum));
  } else if (maximum < 256) {
    for (int64_t i = 0; i < n; i++) out[i] = stretch(p[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = stretch((uint32_t)p[2 * i] << 8 | p[2 * i + 1]);
  }
}

}  // namespace

ImageInfo peek_pnm(Bytes in) {
  Header h = parse(in);
  int depth = h.bitmap() ? 1 : h.maximum < 256 ? 8 : 16;
  return {FORMAT_PNM, (int32_t)h.height, (int32_t)h.width, (int32_t)h.channels, depth, 1, h.least_bytes(), 0};
}

void decode_pnm(Bytes in, Canvas &canvas) {
  Header h = parse(in);
  if (in.size < h.least_bytes())
    fail("PNM: truncated: %lld x %lld pixels need at least %lld bytes, the file has %lld", (long long)h.height,
         (long long)h.width, (long long)h.least_bytes(), (long long)in.size);
  int dtype = h.maximum < 256 ? UINT8 : UINT16;
  void *out = canvas.begin(h.height, h.width, h.channels, dtype);
  if (dtype == UINT8)
    read(in, h, static_cast<uint8_t *>(out));
  else
    read(in, h, static_cast<uint16_t *>(out));
}
