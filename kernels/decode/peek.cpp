// SPDX-License-Identifier: Apache-2.0
// Shapes before pixels: reads the header of an encoded image.
#include "core/first_bytes.h"
#include "decode/image.h"

ImageInfo peek_image(Bytes in) {
  if (in.size == 0) fail("empty file");
  if (in.starts(0, "\xff\xd8\xff", 3)) return peek_jpeg(in);
  if (in.starts(0, "\x89PNG\r\n\x1a\n", 8)) return peek_png(in);
  if (in.starts(0, "II*\0", 4) || in.starts(0, "MM\0*", 4) || in.starts(0, "II+\0", 4) || in.starts(0, "MM\0+", 4))
    return peek_tiff(in);
  if (in.starts(0, "RIFF", 4) && in.starts(8, "WEBP", 4)) return peek_webp(in);
  if (in.starts(0, "\0\0\0\x0cjP  \r\n\x87\n", 12) || in.starts(0, "\xff\x4f\xff\x51", 4)) return peek_jpeg2000(in);
  if (in.starts(0, "BM", 2)) return peek_bmp(in);
  if (in.size > 2 && in.data[0] == 'P' && in.data[1] >= '1' && in.data[1] <= '6' &&
      (in.data[2] <= ' ' || in.data[2] == '#'))
    return peek_pnm(in);
  fail("not an image that can be decoded (JPEG, PNG, BMP, TIFF, WebP, PNM, JPEG 2000): %s",
       FirstBytes(in.data, in.size).text());
}
