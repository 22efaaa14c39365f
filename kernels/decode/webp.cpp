// SPDX-License-Identifier: Apache-2.0
// WebP, lossy and lossless, with or without alpha; the first picture of an animation. The first EXIF chunk gives the
// orientation.
#include <webp/decode.h>

#include <algorithm>

#include "decode/codec.h"

static WebPBitstreamFeatures features(Bytes in) {
  WebPBitstreamFeatures f;
  VP8StatusCode status = WebPGetFeatures(in.data, (size_t)in.size, &f);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA)
    fail("WebP: truncated: the header goes on past the end of the %lld bytes", (long long)in.size);
  if (status != VP8_STATUS_OK) fail("WebP: the header is damaged (libwebp status %d)", (int)status);
  return f;
}

// The content of the first whole chunk of this name; nothing if there is none. (RIFF: chunks of name, size, bytes,
// padded to even sizes; https://developers.google.com/speed/webp/docs/riff_container)
static Bytes chunk(Bytes in, const char *name) {
  for (int64_t at = 12; in.has(at, 8); at += 8 + ((int64_t)in.le32(at + 4) + 1) / 2 * 2)
    if (in.starts(at, name, 4) && in.has(at + 8, in.le32(at + 4))) return in.part(at + 8, in.le32(at + 4));
  return {};
}

// The first picture of an animation, and its place on the canvas.
struct Picture {
  Bytes data;
  int64_t x, y;
  WebPBitstreamFeatures features;
};

static Picture first_picture(Bytes in, const WebPBitstreamFeatures &canvas) {
  constexpr int64_t kHead = 16;  // bytes before the picture's chunks
  const Bytes frame = chunk(in, "ANMF");
  WebPBitstreamFeatures f;
  if (frame.size < kHead || WebPGetFeatures(frame.data + kHead, (size_t)(frame.size - kHead), &f) != VP8_STATUS_OK)
    fail("WebP: the first picture of the animation is damaged or cut off");
  const int64_t x = 2 * (frame.le32(0) & 0xffffff), y = 2 * (frame.le32(3) & 0xffffff);
  if (x + f.width > canvas.width || y + f.height > canvas.height)
    fail("WebP: the first picture of the animation, of %d x %d at (%lld, %lld), leaves the canvas of %d x %d", f.width,
         f.height, (long long)x, (long long)y, canvas.width, canvas.height);
  return {frame.part(kHead, frame.size - kHead), x, y, f};
}

ImageInfo peek_webp(Bytes in) {
  WebPBitstreamFeatures f = features(in);
  check_extent("WebP", f.height, f.width);
  ImageInfo info{FORMAT_WEBP, f.height, f.width, f.has_alpha ? 4 : 3, 8, 1, 0, 0};
  // Only extended files have EXIF.
  if (in.starts(12, "VP8X", 4) && in.u8(20) & 8) {
    Bytes exif = chunk(in, "EXIF");
    // Some writers include the JPEG segment's prefix.
    if (exif.starts(0, "Exif\0\0", 6)) exif = exif.part(6, exif.size - 6);
    info.orientation = exif_orientation(exif);
  }
  return info;
}

void decode_webp(Bytes in, Canvas &canvas) {
  const WebPBitstreamFeatures f = features(in);
  const int channels = f.has_alpha ? 4 : 3;
  const int64_t row = (int64_t)f.width * channels, bytes = f.height * row;
  auto *out = static_cast<uint8_t *>(canvas.begin(f.height, f.width, channels, UINT8));
  Bytes picture = in;
  int64_t first = 0;
  if (f.has_animation) {
    const Picture p = first_picture(in, f);
    picture = p.data, first = p.y * row + p.x * channels;
    if (p.features.width < f.width || p.features.height < f.height) std::fill(out, out + bytes, 0);
  }
  const auto decode = channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (!decode(picture.data, (size_t)picture.size, out + first, (size_t)(bytes - first), (int)row))
    fail("WebP: the pixels are damaged or cut off");
}
