// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "decode/codec.h"

// Checks all that a codec relies on: arguments come from columns filled elsewhere; memory safety must not depend on it.
static void check(const Tensor &out, Bytes in, const DecodeArgs &a) {
  if (in.size == 0) fail("empty file");
  if (out.ndim != 3) fail("[internal error] a decoded image has 3 dimensions, not %d", out.ndim);
  check_extent("image", a.height, a.width);
  if (a.scale_denom != 1 &&
      (a.format != FORMAT_JPEG || (a.scale_denom != 2 && a.scale_denom != 4 && a.scale_denom != 8)))
    fail("[internal error] no scale 1/%d for this format", a.scale_denom);
  int64_t height = ((int64_t)a.height + a.scale_denom - 1) / a.scale_denom,
          width = ((int64_t)a.width + a.scale_denom - 1) / a.scale_denom;
  if (a.orientation >= 5) std::swap(height, width);
  auto inside = [](int64_t at, int64_t n, int64_t size) { return at >= 0 && n >= 0 && at <= size && n <= size - at; };
  if (!inside(a.y, out.shape[0], height) || !inside(a.x, out.shape[1], width))
    fail("the window at y = %lld, x = %lld of %lld x %lld pixels reaches out of the image of %lld x %lld",
         (long long)a.y, (long long)a.x, (long long)out.shape[0], (long long)out.shape[1], (long long)height,
         (long long)width);
}

static void run(const Tensor *out, const Tensor *in, const DecodeArgs &a, Scratch &scratch) {
  Bytes bytes{in->as<const uint8_t>(), in->volume() * item_size(in->dtype)};
  check(*out, bytes, a);
  if (out->volume() == 0) return;
  if (a.format == FORMAT_JPEG) return decode_jpeg(bytes, a, *out, scratch);
  Canvas canvas(*out, a, scratch);
  switch (a.format) {
    case FORMAT_PNG:
      decode_png(bytes, canvas);
      break;
    case FORMAT_BMP:
      decode_bmp(bytes, canvas);
      break;
    case FORMAT_TIFF:
      decode_tiff(bytes, canvas);
      break;
    case FORMAT_WEBP:
      decode_webp(bytes, canvas);
      break;
    case FORMAT_PNM:
      decode_pnm(bytes, canvas);
      break;
    case FORMAT_JPEG2000:
      decode_jpeg2000(bytes, canvas);
      break;
    case FORMAT_JPEG_LOSSLESS:
      decode_jpeg_lossless(bytes, canvas);
      break;
    default:
      fail("[internal error] no decoder for image format %d", a.format);
  }
  canvas.finish();
}
EXPORT_KERNEL(decode, DecodeArgs, run)
