// SPDX-License-Identifier: Apache-2.0
// What a codec is given and what it fills in.
#pragma once
#include "decode/decode.h"
#include "decode/image.h"

// Interleaved samples (HWC, dense) that span the whole range of their type: UINT8, UINT16, or FLOAT in [0, 1].
struct Pixels {
  void *data;
  int64_t height, width, channels;
  int32_t dtype;
};

// A rectangle of an image, in pixels.
struct Window {
  int64_t y, x, height, width;
};

// The pixels of the stored image that the window of the oriented image comes from.
Window stored_window(Window oriented, int orientation, int64_t height, int64_t width);

// Writes `window` (of the oriented image) into out, converting colours and data type. Uses part 3 of the scratch.
void convert_pixels(const Pixels &image, Window window, int orientation, int image_type, const Tensor &out,
                    Scratch &scratch);

// Cyan, magenta, yellow, black to RGB; Adobe's files hold them inverted.
void cmyk_to_rgb(const uint8_t *cmyk, int64_t n, bool inverted, uint8_t *rgb);

// RGB to studio-range YCbCr (ITU-R BT.601); may work in place.
void rgb_to_ycbcr(const uint8_t *rgb, int64_t n, uint8_t *ycbcr);

// Where a codec that decodes whole images puts them. Hands out the output itself where that is what was asked for,
// else scratch memory (part 0) that `finish` converts from. Codecs may use parts 1 and 2.
class Canvas {
 public:
  Canvas(const Tensor &out, const DecodeArgs &args, Scratch &scratch) : out_(out), args_(args), scratch_(scratch) {}
  // Fails unless the extent is the promised one, so that no header decides how much memory is taken.
  void verify(int64_t height, int64_t width) const;
  // Verifies, and gives room for the whole image. The decoder owes every sample of it.
  void *begin(int64_t height, int64_t width, int64_t channels, int32_t dtype);
  void finish();
  Scratch &scratch() { return scratch_; }

 private:
  const Tensor &out_;
  const DecodeArgs &args_;
  Scratch &scratch_;
  Pixels pixels_{};
};

// JPEG decodes only the window, so it takes everything into its own hands.
void decode_jpeg(Bytes in, const DecodeArgs &args, const Tensor &out, Scratch &scratch);
void decode_jpeg_lossless(Bytes in, Canvas &canvas);
void decode_png(Bytes in, Canvas &canvas);
void decode_bmp(Bytes in, Canvas &canvas);
void decode_tiff(Bytes in, Canvas &canvas);
void decode_webp(Bytes in, Canvas &canvas);
void decode_pnm(Bytes in, Canvas &canvas);
void decode_jpeg2000(Bytes in, Canvas &canvas);
