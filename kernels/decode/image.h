// SPDX-License-Identifier: Apache-2.0
// Contents of an encoded image's header, and bounds-checked reading of headers.
#pragma once
#include <cstring>

#include "core/kernel.h"

enum ImageFormat : int32_t {
  FORMAT_JPEG = 1,
  FORMAT_PNG,
  FORMAT_BMP,
  FORMAT_TIFF,
  FORMAT_WEBP,
  FORMAT_PNM,
  FORMAT_JPEG2000,
  FORMAT_JPEG_LOSSLESS,
};

// As stored, before `orientation` is applied. Written by plan_images; the decoder verifies it.
struct ImageInfo {
  int32_t format;  // 0 if unreadable
  int32_t height, width;
  int32_t channels;     // after palettes are resolved
  int32_t depth;        // bits per sample as stored
  int32_t orientation;  // EXIF: 1 as is, 2 mirrored, 3 turned by 180, 4 flipped, 5 transposed, 6 right, 7 transversed,
                        // 8 left
  int64_t least_bytes;  // the minimum file size for this many pixels; 0 if unknown
  int32_t plain;        // a JPEG for hardware decoders: baseline, YCbCr, usual sampling, with its end marker
};

// An encoded file in memory. Nothing past `size` is ever read.
struct Bytes {
  const uint8_t *data;
  int64_t size;

  bool has(int64_t at, int64_t n) const { return at >= 0 && n >= 0 && at <= size && n <= size - at; }
  const uint8_t *need(int64_t at, int64_t n) const {
    if (!has(at, n)) fail("truncated: the header goes on past the end of the %lld bytes", (long long)size);
    return data + at;
  }
  bool starts(int64_t at, const char *text, int64_t n) const { return has(at, n) && !memcmp(data + at, text, n); }

  uint32_t u8(int64_t at) const { return *need(at, 1); }
  uint32_t be16(int64_t at) const {
    const uint8_t *p = need(at, 2);
    return (uint32_t)p[0] << 8 | p[1];
  }
  uint32_t le16(int64_t at) const {
    const uint8_t *p = need(at, 2);
    return (uint32_t)p[1] << 8 | p[0];
  }
  uint32_t be32(int64_t at) const { return be16(at) << 16 | be16(at + 2); }
  uint32_t le32(int64_t at) const { return le16(at + 2) << 16 | le16(at); }
  Bytes part(int64_t at, int64_t n) const { return {need(at, n), n}; }
};

inline void check_extent(const char *format, int64_t height, int64_t width) {
  if (height <= 0 || width <= 0 || height > INT32_MAX || width > INT32_MAX)
    fail("%s: height %lld and width %lld are not a size", format, (long long)height, (long long)width);
  // Keeps products with channels and bytes from overflowing.
  if (height > (1ll << 40) / width)
    fail("%s: %lld x %lld pixels are too many", format, (long long)height, (long long)width);
}

// The orientation in an EXIF block (a TIFF structure); 1 if it has none or an invalid one.
int exif_orientation(Bytes exif);

// Header parser of each codec. They throw on errors.
ImageInfo peek_jpeg(Bytes in);
ImageInfo peek_png(Bytes in);
ImageInfo peek_bmp(Bytes in);
ImageInfo peek_tiff(Bytes in);
ImageInfo peek_webp(Bytes in);
ImageInfo peek_pnm(Bytes in);
ImageInfo peek_jpeg2000(Bytes in);

// Recognised by content, not by name.
ImageInfo peek_image(Bytes in);
