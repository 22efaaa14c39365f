// SPDX-License-Identifier: Apache-2.0
// Conversions between RGB, BGR, GRAY and YCbCr with 8 bits a channel. YCbCr is that of Rec. ITU-R BT.601 with its
// studio range: Y in [16, 235], Cb and Cr in [16, 240]; RGB and GRAY use [0, 255]. GRAY is the luma of BT.601 over the
// full range.
#pragma once
#include "core/convert.h"

struct ColorSpaceArgs {
  int32_t from, to;  // values of types.DALIImageType
};

enum Space : int32_t { RGB, BGR, GRAY, YCBCR };

// Luma weights of BT.601, and the ranges of Y and of Cb, Cr in 8 bits.
constexpr double kRed = 0.299, kGreen = 0.587, kBlue = 0.114;
constexpr double kLuma = 219.0 / 255, kChroma = 224.0 / 255;

// The weights in units of 2^-15 are 9798, 19235 and 3735. Doubled, they are split into bytes, so that 16-bit arithmetic
// is exact: (256 high + low + 2^15) >> 16 = (high + (low >> 8) + 2^7) >> 8.
struct GrayWeights {
  uint16_t high[3] = {76, 150, 29}, low[3] = {140, 70, 46};
};
SHARED uint8_t rgb_to_gray(uint8_t r, uint8_t g, uint8_t b, const GrayWeights &w = {}) {
  const uint16_t high = (uint16_t)(r * w.high[0] + g * w.high[1] + b * w.high[2]);
  const uint16_t low = (uint16_t)(r * w.low[0] + g * w.low[1] + b * w.low[2]);
  return (uint8_t)((uint16_t)(high + (low >> 8) + 128) >> 8);
}

template <class V>
SHARED V rgb_to_y(V r, V g, V b) {
  return r * (float)(kLuma * kRed) + g * (float)(kLuma * kGreen) + b * (float)(kLuma * kBlue) + 16.0f;
}
// Cb = 128 + chroma (B - Y') / (2 (1 - kBlue)), where Y' is the luma over the full range; Cr the same with R.
template <class V>
SHARED V rgb_to_cb(V r, V g, V b) {
  constexpr double k = kChroma / (2 * (1 - kBlue));
  return r * (float)(-k * kRed) + g * (float)(-k * kGreen) + b * (float)(kChroma / 2) + 128.0f;
}
template <class V>
SHARED V rgb_to_cr(V r, V g, V b) {
  constexpr double k = kChroma / (2 * (1 - kRed));
  return r * (float)(kChroma / 2) + g * (float)(-k * kGreen) + b * (float)(-k * kBlue) + 128.0f;
}

SHARED uint8_t gray_to_y(uint8_t gray) { return saturate<uint8_t>((float)gray * (float)kLuma + 16.0f); }
SHARED uint8_t y_to_gray(uint8_t y) { return saturate<uint8_t>(((float)y - 16.0f) * (float)(1 / kLuma)); }

template <class V>
SHARED V ycbcr_to_r(V y, V, V cr) {
  constexpr double k = 2 * (1 - kRed) / kChroma;
  return (y - 16.0f) * (float)(1 / kLuma) + (cr - 128.0f) * (float)k;
}
template <class V>
SHARED V ycbcr_to_g(V y, V cb, V cr) {
  constexpr double blue = 2 * (1 - kBlue) * kBlue / kGreen / kChroma, red = 2 * (1 - kRed) * kRed / kGreen / kChroma;
  return (y - 16.0f) * (float)(1 / kLuma) - (cb - 128.0f) * (float)blue - (cr - 128.0f) * (float)red;
}
template <class V>
SHARED V ycbcr_to_b(V y, V cb, V) {
  constexpr double k = 2 * (1 - kBlue) / kChroma;
  return (y - 16.0f) * (float)(1 / kLuma) + (cb - 128.0f) * (float)k;
}
