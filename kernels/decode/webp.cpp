// SPDX-License-Identifier: Apache-2.0
// WebP, lossy and lossless, with or without alpha; the first EXIF chunk gives the orientation.
#include <webp/decode.h>

#include "decode/codec.h"

static WebPBitstreamFeatures features(Bytes in) {
  WebPBitstreamFeatures f;
  VP8StatusCode status = WebPGetFeatures(in.data, (size_t)in.size, &f);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA)
    fail("WebP: truncated: the header goes on past the end of the %lld bytes", (long long)in.size);
  if (status != VP8_STATUS_OK) fail("WebP: the header is damaged (libwebp status %d)", (int)status);
  if (f.has_animation) fail("WebP: animations are not supported");
  return f;
}

ImageInfo peek_webp(Bytes in) {
  WebPBitstreamFeatures f = features(in);
  check_extent("WebP", f.height, f.width);
  ImageInfo info{FORMAT_WEBP, f.height, f.width, f.has_alpha ? 4 : 3, 8, 1, 0, 0};
  // RIFF: chunks of (name, size, bytes), padded to even sizes. Only extended files have EXIF.
  if (in.starts(12, "VP8X", 4) && in.u8(20) & 8)
    for (int64_t at = 12; in.has(at, 8); at += 8 + ((int64_t)in.le32(at + 4) + 1) / 2 * 2)
      if (in.starts(at, "EXIF", 4) && in.has(at + 8, in.le32(at + 4))) {
        Bytes exif = in.part(at + 8, in.le32(at + 4));
        // Some writers include the JPEG segment's prefix.
        if (exif.starts(0, "Exif\0\0", 6)) exif = exif.part(6, exif.size - 6);
        info.orientation = exif_orientation(exif);
        break;
      }
  return info;
}

void decode_webp(Bytes in, Canvas &canvas) {
  WebPBitstreamFeatures f = features(in);
  int channels = f.has_alpha ? 4 : 3;
  auto *out = static_cast<uint8_t *>(canvas.begin(f.height, f.width, channels, UINT8));
  auto decode = channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  size_t bytes = (size_t)f.height * f.width * channels;
  if (!decode(in.data, (size_t)in.size, out, bytes, f.width * channels))
    fail("WebP: the pixels are damaged or cut off");
}
