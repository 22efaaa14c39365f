// SPDX-License-Identifier: Apache-2.0
// Input and output of a codec.
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

// Maps a window of the oriented image to the stored image.
Window stored_window(Window oriented, int orientation, int64_t height, int64_t width);

// Writes `window` (of the oriented image) into out, converting colours and data type. Uses part 3 of the scratch.
void convert_pixels(const Pixels &image, Window window, int orientation, int image_type, const Tensor &out,
                    Scratch &scratch);

// Cyan, magenta, yellow, black to RGB; Adobe's files hold them inverted.
void cmyk_to_rgb(const uint8_t *cmyk, int64_t n, bool inverted, uint8_t *rgb);

// RGB to studio-range YCbCr (ITU-R BT.601); may work in place.
void rgb_to_ycbcr(const uint8_t *rgb, int64_t n, uint8_t *ycbcr);

// Where codecs that decode whole images put them: directly into the output if it has the requested form, else into
// scratch memory (part 0) that `finish` converts. Codecs may use parts 1 and 2.
class Canvas {
 public:
  Canvas(const Tensor &out, const DecodeArgs &args, Scratch &scratch) : out_(out), args_(args), scratch_(scratch) {}
  // Fails unless the extent is the announced one, so that no header decides how much memory is allocated.
  void verify(int64_t height, int64_t width) const;
  // Verifies the extent and returns memory for the whole image, every sample of which the decoder must write.
  void *begin(int64_t height, int64_t width, int64_t channels, int32_t dtype);
  void finish();
  Scratch &scratch() { return scratch_; }

 private:
  const Tensor &out_;
  const DecodeArgs &args_;
  Scratch &scratch_;
  Pixels pixels_{};
};

// JPEG decodes only the window, so it does everything itself.
void decode_jpeg(Bytes in, const DecodeArgs &args, const Tensor &out, Scratch &scratch);
void decode_jpeg_lossless(Bytes in, Canvas &canvas);
void decode_png(Bytes in, Canvas &canvas);
void decode_bmp(Bytes in, Canvas &canvas);
void decode_tiff(Bytes in, Canvas &canvas);
void decode_webp(Bytes in, Canvas &canvas);
void decode_pnm(Bytes in, Canvas &canvas);
void decode_jpeg2000(Bytes in, Canvas &canvas);
