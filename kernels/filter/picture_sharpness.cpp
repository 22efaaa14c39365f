// SPDX-License-Identifier: Apache-2.0
// Mixes pictures of bytes with their smoothed form as in PyTorch: the products of a window are added up row after row
// with fused multiply-add, and the sum is rounded.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/kernel.h"

namespace {

CLONES void row(uint8_t *__restrict out, const uint8_t *__restrict above, const uint8_t *__restrict in,
                const uint8_t *__restrict below, int64_t n, float middle, float around, float rest) {
  for (int64_t i = 1; i < n - 1; i++) {
    float sum = (float)above[i - 1] * around;
    sum = std::fma((float)above[i], around, sum);
    sum = std::fma((float)above[i + 1], around, sum);
    sum = std::fma((float)in[i - 1], around, sum);
    sum = std::fma((float)in[i], middle, sum);
    sum = std::fma((float)in[i + 1], around, sum);
    sum = std::fma((float)below[i - 1], around, sum);
    sum = std::fma((float)below[i], around, sum);
    sum = std::fma((float)below[i + 1], around, sum);
    const float x = in[i], mixed = std::fma(std::nearbyint(sum) - x, rest, x);
    out[i] = (uint8_t)(int)(mixed < 0 ? 0 : mixed > 255 ? 255 : mixed);
  }
}

}  // namespace

// Dense planes (n, height, width). `rest`: share of the smoothed picture. The border is not changed.
EXPORT void picture_sharpness(const uint8_t *in, int64_t n, int64_t height, int64_t width, float middle, float around,
                              float rest, uint8_t *out) {
  memcpy(out, in, n * height * width);
  for (int64_t p = 0; p < n; p++, in += height * width, out += height * width)
    for (int64_t y = 1; y < height - 1; y++) {
      const uint8_t *line = in + y * width;
      row(out + y * width, line - width, line, line + width, width, middle, around, rest);
    }
}
EXPORT_LONG(picture_sharpness)
