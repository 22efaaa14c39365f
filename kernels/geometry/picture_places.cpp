// SPDX-License-Identifier: Apache-2.0
// Pixels of uint8 pictures at the positions of a grid: nearest neighbours, as PyTorch's grid_sample chooses them.
#include <cmath>
#include <cstdint>

#include "core/kernel.h"

namespace {

constexpr int64_t kBlock = 2048;  // positions at a time

// Offset of each position in a plane; -1 if outside. Coordinates of the grid go from -1 to 1, from edge to edge.
CLONES void find(int32_t *__restrict at, const float *__restrict grid, int64_t n, int32_t height, int32_t width) {
  const float across = (float)width / 2, down = (float)height / 2, right = (float)width, bottom = (float)height;
  for (int64_t i = 0; i < n; i++) {
    const float x = std::nearbyint((grid[2 * i] + 1) * across - 0.5f);
    const float y = std::nearbyint((grid[2 * i + 1] + 1) * down - 0.5f);
    const bool inside = (x >= 0) & (x < right) & (y >= 0) & (y < bottom);  // false for NaN
    at[i] = inside ? (int32_t)(inside ? y : 0) * width + (int32_t)(inside ? x : 0) : -1;
  }
}

void take(uint8_t *__restrict out, const uint8_t *__restrict in, const int32_t *__restrict at, int64_t n,
          uint8_t fill) {
  for (int64_t i = 0; i < n; i++) out[i] = at[i] < 0 ? fill : in[at[i]];
}

}  // namespace

// n dense pictures of `channels` planes (height, width). `grid`: `size` positions (x, y), the same for all pictures.
// `fill`: value outside, per channel.
EXPORT void picture_places(const uint8_t *in, int64_t n, int64_t channels, int64_t height, int64_t width,
                           const float *grid, int64_t size, const uint8_t *fill, uint8_t *out) {
  int32_t at[kBlock];
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t m = size - begin < kBlock ? size - begin : kBlock;
    find(at, grid + 2 * begin, m, (int32_t)height, (int32_t)width);
    for (int64_t i = 0; i < n * channels; i++)
      take(out + i * size + begin, in + i * height * width, at, m, fill[i % channels]);
  }
}
EXPORT_LONG(picture_places)
