// SPDX-License-Identifier: Apache-2.0
// Converts the pixels a codec delivers to the requested ones: window, orientation, colours, data type.
#include <algorithm>

#include "decode/codec.h"
#include "decode/colours.h"

namespace {

// Converts a row of n pixels, `step` samples apart, of an image with `channels`, to `out_channels` of the wanted
// colours.
template <class T>
CLONES void colours(const T *in, int64_t step, int64_t n, int64_t channels, int image_type, T *out,
                    int64_t out_channels) {
  bool colour = channels >= 3;
  if (image_type == ANY_DATA || (image_type == GRAY && !colour)) {
    for (int64_t i = 0; i < n; i++, in += step, out += out_channels)
      for (int64_t c = 0; c < out_channels; c++) out[c] = in[c];
  } else if (image_type == GRAY) {
    for (int64_t i = 0; i < n; i++) out[i] = luma<T>(in[i * step], in[i * step + 1], in[i * step + 2]);
  } else {
    int g = colour ? 1 : 0, b = colour ? 2 : 0;
    if (image_type == RGB)
      for (int64_t i = 0; i < n; i++, in += step) out[3 * i] = in[0], out[3 * i + 1] = in[g], out[3 * i + 2] = in[b];
    else if (image_type == BGR)
      for (int64_t i = 0; i < n; i++, in += step) out[3 * i] = in[b], out[3 * i + 1] = in[g], out[3 * i + 2] = in[0];
    else
      for (int64_t i = 0; i < n; i++, in += step) ycbcr<T>(out + 3 * i, in[0], in[g], in[b]);
  }
}

template <class Out, class In>
CLONES void rescale(const In *in, int64_t n, Out *out) {
  constexpr float factor = Full<Out>::value / Full<In>::value;
  for (int64_t i = 0; i < n; i++) out[i] = saturate<Out>(in[i] * factor);
}

// Where row r of the oriented image begins in the stored one, and the distance of its pixels, in pixels.
void oriented_row(int orientation, int64_t h, int64_t w, int64_t r, int64_t c, int64_t *first, int64_t *step) {
  switch (orientation) {
    case 2:
      *first = r * w + w - 1 - c, *step = -1;
      break;
    case 3:
      *first = (h - 1 - r) * w + w - 1 - c, *step = -1;
      break;
    case 4:
      *first = (h - 1 - r) * w + c, *step = 1;
      break;
    case 5:
      *first = c * w + r, *step = w;
      break;
    case 6:
      *first = (h - 1 - c) * w + r, *step = -w;
      break;
    case 7:
      *first = (h - 1 - c) * w + w - 1 - r, *step = -w;
      break;
    case 8:
      *first = c * w + w - 1 - r, *step = w;
      break;
    default:
      *first = r * w + c, *step = 1;
  }
}

template <class In>
void convert_rows(const Pixels &image, Window window, int orientation, int image_type, const Tensor &out,
                  Scratch &scratch) {
  int64_t channels = out.shape[2], row = window.width * channels;
  bool same_type = out.dtype == DTypeOf<In>::value;
  In *line = same_type ? nullptr : scratch.array<In>(row, 3);
  for (int64_t r = 0; r < window.height; r++) {
    int64_t first, step;
    oriented_row(orientation, image.height, image.width, window.y + r, window.x, &first, &step);
    In *to = same_type ? out.as<In>() + r * row : line;
    const In *from = static_cast<const In *>(image.data) + first * image.channels;
    if (step == 1 && image.channels == channels && (image_type == RGB || image_type == ANY_DATA || channels == 1))
      memcpy(to, from, row * sizeof(In));
    else
      colours(from, step * image.channels, window.width, image.channels, image_type, to, channels);
    if (!same_type)
      for_types<uint8_t, uint16_t, uint32_t, int8_t, int16_t, int32_t, float>(out.dtype, [&](auto sample) {
        using Out = decltype(sample);
        rescale(line, row, out.as<Out>() + r * row);
      });
  }
}

}  // namespace

Window stored_window(Window o, int orientation, int64_t height, int64_t width) {
  if (orientation >= 5) {
    std::swap(o.y, o.x);
    std::swap(o.height, o.width);
  }
  if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) o.y = height - o.y - o.height;
  if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) o.x = width - o.x - o.width;
  return o;
}

void convert_pixels(const Pixels &image, Window window, int orientation, int image_type, const Tensor &out,
                    Scratch &scratch) {
  if (image_type == ANY_DATA ? image.channels < out.shape[2] : out.shape[2] != (image_type == GRAY ? 1 : 3))
    fail("an image of %lld channels can't be written as %lld", (long long)image.channels, (long long)out.shape[2]);
  for_types<uint8_t, uint16_t, float>(image.dtype, [&](auto sample) {
    convert_rows<decltype(sample)>(image, window, orientation, image_type, out, scratch);
  });
}

// The products are truncated, as DALI does.
CLONES void cmyk_to_rgb(const uint8_t *cmyk, int64_t n, bool inverted, uint8_t *rgb) {
  int flip = inverted ? 0 : 255;
  for (int64_t i = 0; i < n; i++, cmyk += 4, rgb += 3) {
    int k = cmyk[3] ^ flip;
    rgb[0] = (cmyk[0] ^ flip) * k / 255;
    rgb[1] = (cmyk[1] ^ flip) * k / 255;
    rgb[2] = (cmyk[2] ^ flip) * k / 255;
  }
}

CLONES void rgb_to_ycbcr(const uint8_t *rgb, int64_t n, uint8_t *out) {
  for (int64_t i = 0; i < n; i++, rgb += 3, out += 3) ycbcr<uint8_t>(out, rgb[0], rgb[1], rgb[2]);
}

void Canvas::verify(int64_t height, int64_t width) const {
  if (height != args_.height || width != args_.width)
    fail("the decoder sees %lld x %lld pixels, the header said %d x %d", (long long)height, (long long)width,
         args_.height, args_.width);
}

void *Canvas::begin(int64_t height, int64_t width, int64_t channels, int32_t dtype) {
  verify(height, width);
  pixels_ = {nullptr, height, width, channels, dtype};
  bool whole = args_.orientation <= 1 && out_.shape[0] == height && out_.shape[1] == width;
  bool as_stored =
      args_.output_type == RGB || args_.output_type == ANY_DATA || (args_.output_type == GRAY && channels == 1);
  if (whole && as_stored && out_.shape[2] == channels && out_.dtype == dtype) return pixels_.data = out_.data;
  return pixels_.data = scratch_.get(height * width * channels * item_size(dtype), 0);
}

void Canvas::finish() {
  if (pixels_.data == out_.data) return;
  Window window{args_.y, args_.x, out_.shape[0], out_.shape[1]};
  convert_pixels(pixels_, window, args_.orientation, args_.output_type, out_, scratch_);
}
