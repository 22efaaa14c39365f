// SPDX-License-Identifier: Apache-2.0
// Converts pictures of bytes to floats, channels first: (x * scale / divisor - mean) / deviation, each step rounded to
// float as in PyTorch. (torchvision divides by 255 in ToTensor, and multiplies by 1 / 255 in ToDtype.)
#include <cstdint>

#include "core/kernel.h"

namespace {

struct Way {
  float scale, divisor, mean, deviation;
};

template <int kStep>
inline void line(float *__restrict out, const uint8_t *__restrict in, int64_t n, int64_t step, Way w) {
  const int64_t s = kStep ? kStep : step;
  if (w.divisor == 1) {
    for (int64_t i = 0; i < n; i++) out[i] = ((float)in[i * s] * w.scale - w.mean) / w.deviation;
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = ((float)in[i * s] * w.scale / w.divisor - w.mean) / w.deviation;
  }
}

CLONES void row(float *out, const uint8_t *in, int64_t n, int64_t step, Way w) {
  switch (step) {
    case 1:
      return line<1>(out, in, n, 1, w);
    case -1:  // mirrored
      return line<-1>(out, in, n, -1, w);
    case -3:
      return line<-3>(out, in, n, -3, w);
    case 3:
      return line<3>(out, in, n, 3, w);
    case 4:
      return line<4>(out, in, n, 4, w);
    default:
      return line<0>(out, in, n, step, w);
  }
}

}  // namespace

// n pictures (height, width) of `channels` channels. `steps`: strides in bytes (pictures, channels, rows, pixels). For
// scaling only, `mean` is 0 and `deviation` 1.
EXPORT void pixels_to_float(const uint8_t *in, int64_t n, int64_t channels, int64_t height, int64_t width,
                            const int64_t *steps, float scale, float divisor, const float *mean, const float *deviation,
                            float *out) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t y = 0; y < height; y++, out += width)
        row(out, in + i * steps[0] + c * steps[1] + y * steps[2], width, steps[3],
            Way{scale, divisor, mean[c], deviation[c]});
}
EXPORT_LONG(pixels_to_float)
