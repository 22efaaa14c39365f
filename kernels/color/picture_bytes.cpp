// SPDX-License-Identifier: Apache-2.0
// Colours of uint8 pictures, plane after plane. Each step is rounded to float as in PyTorch, which uses fused
// multiply-add.
#include <cmath>
#include <cstdint>

#include "core/kernel.h"

namespace {

inline float clamp(float x, float most) { return x < 0 ? 0 : x > most ? most : x; }
inline uint8_t luma_of(uint8_t red, uint8_t green, uint8_t blue) {
  return (uint8_t)(int)std::fma((float)blue, 0.114f, std::fma((float)green, 0.587f, (float)red * 0.2989f));
}

CLONES void luma(uint8_t *__restrict out, const uint8_t *__restrict red, const uint8_t *__restrict green,
                 const uint8_t *__restrict blue, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = luma_of(red[i], green[i], blue[i]);
}

CLONES void mix(uint8_t *__restrict out, const uint8_t *__restrict in, const uint8_t *__restrict other, int64_t n,
                float share, float rest) {
  for (int64_t i = 0; i < n; i++)
    out[i] = (uint8_t)(int)clamp(std::fma((float)other[i], rest, (float)in[i] * share), 255);
}

// Around the hue circle, a channel is high for two sixths, falls for one, is low for two, and rises for one. Green lags
// red by two sixths, and blue lags green by two.
inline uint8_t channel(int sixth, float value, float low, float falling, float rising) {
  const int k = sixth >= 6 ? sixth - 6 : sixth;
  const float x = k == 0 || k == 5 ? value : k == 1 ? falling : k == 4 ? rising : low;
  return (uint8_t)(int)(x * 255.999f);
}

CLONES void turn_hue(uint8_t *__restrict out, const uint8_t *__restrict in, int64_t n, float shift) {
  for (int64_t i = 0; i < n; i++) {
    const float unit = (float)(1.0 / 255);
    const float r = (float)in[i] * unit, g = (float)in[n + i] * unit, b = (float)in[2 * n + i] * unit;
    const float most = r > g ? (r > b ? r : b) : (g > b ? g : b), least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    const float span = most - least;
    const float saturation = span / (span == 0 ? 1 : most), over = span == 0 ? 1 : span;
    const float red = (most - r) / over, green = (most - g) / over, blue = (most - b) / over;
    const float from = r == most ? blue - green : g == most ? red + 2 - blue : green + 4 - red;
    float hue = from * (float)(1.0 / 6) + 1;
    hue -= (float)(int)hue;
    hue += shift;
    hue -= (float)(int)hue;
    hue = hue < 0 ? hue + 1 : hue;
    const float sixths = hue * 6;
    const int whole = (int)sixths, sixth = whole >= 6 ? whole - 6 : whole;
    const float part = sixths - (float)whole, rest = 1 - saturation;
    const float falling = clamp((1 - saturation * part) * most, 1),
                rising = clamp((saturation * part + rest) * most, 1);
    const float low = clamp(rest * most, 1);
    out[i] = channel(sixth, most, low, falling, rising);
    out[n + i] = channel(sixth + 4, most, low, falling, rising);
    out[2 * n + i] = channel(sixth + 2, most, low, falling, rising);
  }
}

template <int kStep>
inline void gather(uint8_t *__restrict out, const uint8_t *__restrict in, int64_t n, int64_t step) {
  const int64_t s = kStep ? kStep : step;
  for (int64_t i = 0; i < n; i++) out[i] = in[i * s];
}

CLONES void take(uint8_t *out, const uint8_t *in, int64_t n, int64_t step) {
  if (step == 1) return gather<1>(out, in, n, 1);
  if (step == -1) return gather<-1>(out, in, n, -1);
  if (step == 3) return gather<3>(out, in, n, 3);
  if (step == 4) return gather<4>(out, in, n, 4);
  gather<0>(out, in, n, step);
}

}  // namespace

// Below, pictures are dense: n pictures with three planes of `size` elements each.

// Rounded down.
EXPORT void picture_luma(const uint8_t *in, int64_t n, int64_t size, uint8_t *out) {
  for (int64_t i = 0; i < n; i++, in += 3 * size) luma(out + i * size, in, in + size, in + 2 * size, size);
}
EXPORT_LONG(picture_luma)

// share * picture + rest * its luma.
EXPORT void picture_saturation(const uint8_t *in, int64_t n, int64_t size, float share, float rest, uint8_t *out) {
  constexpr int64_t kBlock = 4096;
  uint8_t grey[kBlock];
  for (int64_t i = 0; i < n; i++, in += 3 * size, out += 3 * size)
    for (int64_t at = 0; at < size; at += kBlock) {
      const int64_t m = size - at < kBlock ? size - at : kBlock;
      luma(grey, in + at, in + size + at, in + 2 * size + at, m);
      for (int c = 0; c < 3; c++) mix(out + c * size + at, in + c * size + at, grey, m, share, rest);
    }
}
EXPORT_LONG(picture_saturation)

EXPORT void picture_hue(const uint8_t *in, int64_t n, int64_t size, float shift, uint8_t *out) {
  for (int64_t i = 0; i < n; i++) turn_hue(out + 3 * i * size, in + 3 * i * size, size, shift);
}
EXPORT_LONG(picture_hue)

// Histograms of n planes: (n, 256).
EXPORT void plane_counts(const uint8_t *in, int64_t n, int64_t size, int64_t *out) {
  for (int64_t i = 0; i < n; i++, in += size, out += 256) {
    uint32_t counts[4][256] = {};  // four, as neighbours are often equal and would wait for the same counter
    int64_t at = 0;
    for (; at + 4 <= size; at += 4)
      for (int k = 0; k < 4; k++) counts[k][in[at + k]]++;
    for (; at < size; at++) counts[0][in[at]]++;
    for (int v = 0; v < 256; v++) out[v] = (int64_t)counts[0][v] + counts[1][v] + counts[2][v] + counts[3][v];
  }
}
EXPORT_LONG(plane_counts)

// Maps each value through a table; `shared` consecutive planes have the same table.
EXPORT void plane_tables(const uint8_t *in, int64_t n, int64_t size, const uint8_t *tables, int64_t shared,
                         uint8_t *out) {
  for (int64_t i = 0; i < n; i++, in += size, out += size) {
    const uint8_t *table = tables + i / shared * 256;
    for (int64_t at = 0; at < size; at++) out[at] = table[in[at]];
  }
}
EXPORT_LONG(plane_tables)

// Copies n pictures to dense memory. `steps`: strides in bytes (pictures, channels, rows, pixels).
EXPORT void picture_planes(const uint8_t *in, int64_t n, int64_t channels, int64_t height, int64_t width,
                           const int64_t *steps, uint8_t *out) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t y = 0; y < height; y++, out += width)
        take(out, in + i * steps[0] + c * steps[1] + y * steps[2], width, steps[3]);
}
EXPORT_LONG(picture_planes)
