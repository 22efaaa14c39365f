// SPDX-License-Identifier: Apache-2.0
// Automatic augmentation. Each sample has its own short program of steps. One kernel does all kinds of steps, so that
// samples with different programs stay in one batch. Images are uint8, HWC.
#pragma once
#include "core/convert.h"
#include "geometry/warp.h"

// The kinds of steps and the meaning of their values (index: meaning).
enum AugmentKind : int32_t {
  AUGMENT_NOTHING,
  AUGMENT_WARP,           // 0..5 matrix from output to input, 6 whether it is around the centre, 7 whether the shift is
                          // a fraction of the shape
  AUGMENT_COLOR,          // 0..8 matrix on R, G, B
  AUGMENT_FILTER,         // 0..8 weights of the neighbours; reflected border
  AUGMENT_BRIGHTNESS,     // 0 factor
  AUGMENT_POSTERIZE,      // 0 mask that is ANDed with each value
  AUGMENT_SOLARIZE,       // 0 threshold
  AUGMENT_SOLARIZE_ADD,   // 0 addend for values below 128
  AUGMENT_INVERT,         //
  AUGMENT_CONTRAST,       // 0 factor for the distance from the image's mean luma
  AUGMENT_AUTO_CONTRAST,  // stretches each channel to [0, 255]
  AUGMENT_EQUALIZE,       // equalizes the histogram of each channel
};

// Floats per step: the kind, its values, and its probability, which Python has already applied.
constexpr int kStepFloats = 16;

struct AugmentArgs {
  const float *steps;  // n_steps * kStepFloats values
  int32_t n_steps;
  float fill;      // value outside of the image
  uint8_t clamp;   // repeat the border instead of using `fill`
  uint8_t linear;  // linear interpolation; else nearest neighbour
  float shape[2];  // height and width that fractional shifts refer to
  // GPU only, the same for all samples: bytes of the largest image, rounded up to 16; the largest number of channels;
  // and a bit mask of the steps that count the image first in any sample.
  int64_t image_bytes;
  int32_t channels, counted;
};

SHARED int augment_kind(const float *step) { return (int)step[0]; }
// Whether the step maps each value through a table.
SHARED bool augment_is_table(int kind) { return kind >= AUGMENT_BRIGHTNESS; }
// Whether the table depends on all values of the image; whether there is a table per channel.
SHARED bool augment_needs_image(int kind) { return kind >= AUGMENT_CONTRAST; }
SHARED bool augment_is_per_channel(int kind) { return kind >= AUGMENT_AUTO_CONTRAST; }

// Fills in the arguments of the warp kernel for an AUGMENT_WARP step.
SHARED void augment_warp(WarpArgs *w, const AugmentArgs &a, const float *step, int64_t height, int64_t width) {
  const float *m = step + 1;
  for (int i = 0; i < 12; i++) w->matrix[i] = i < 6 ? m[i] : 0.0f;
  if (m[7] != 0) {
    w->matrix[2] = m[2] * a.shape[1];
    w->matrix[5] = m[5] * a.shape[0];
  }
  if (m[6] != 0) {
    const double x = 0.5 * (double)width, y = 0.5 * (double)height;
    w->matrix[2] = (float)(x - ((double)m[0] * x + (double)m[1] * y));
    w->matrix[5] = (float)(y - ((double)m[3] * x + (double)m[4] * y));
  }
  w->fill = a.fill, w->clamp = a.clamp, w->linear = a.linear, w->dims = 2, w->add_steps = 0;
  for (int d = 0; d < 3; d++) w->origin[d] = 0;
}

// Table entry for value v; for kinds that don't depend on the image.
SHARED uint8_t augment_entry(int kind, float value, int v) {
  switch (kind) {
    case AUGMENT_BRIGHTNESS:
      return saturate<uint8_t>(value * (float)v);
    case AUGMENT_POSTERIZE:
      return (uint8_t)(v & (int)value);
    case AUGMENT_SOLARIZE:
      return (uint8_t)((float)v < value ? v : 255 - v);
    case AUGMENT_SOLARIZE_ADD:
      return (uint8_t)(v < 128 ? v + (int)value : v);
    case AUGMENT_INVERT:
      return (uint8_t)(255 - v);
    default:
      return (uint8_t)v;
  }
}

// The mean luma that contrast is relative to. `sums`: per channel (1 or 3 channels).
template <class Sum>
SHARED float augment_luma(const Sum *sums, int channels, int64_t n_pixels) {
  const float weight[3] = {0.299f, 0.587f, 0.114f};
  float luma = 0;
  for (int c = 0; c < 3; c++) luma += (float)((double)sums[channels == 1 ? 0 : c] / (double)n_pixels) * weight[c];
  return luma;
}
SHARED uint8_t augment_contrast(float center, float factor, int v) {
  return saturate<uint8_t>(center + ((float)v - center) * factor);
}
SHARED uint8_t augment_stretch(int lo, int hi, int v) {
  if (hi <= lo) return (uint8_t)v;
  return saturate<uint8_t>((float)(v - lo) * (255.0f / (float)(hi - lo)));
}

// Table entry of histogram equalization, as in OpenCV: `below` counts the values up to this one, without those of the
// smallest value. Halves round to even.
SHARED uint8_t augment_spread(uint32_t below, float scale) {
  const float x = (float)below * scale;
  const int whole = (int)x;
  const float rest = x - (float)whole;
  const int y = whole + (rest > 0.5f || (rest == 0.5f && (whole & 1)));
  return (uint8_t)(y > 255 ? 255 : y);
}

// Index of the reflected pixel (gfedcb|abcdefgh|gfedcba) for i in [-1, n].
SHARED int64_t augment_reflect(int64_t i, int64_t n) {
  if (n == 1) return 0;
  return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

// Whether all eight neighbours have the same weight. Their sum is then computed first, in integers.
SHARED bool augment_is_even(const float *k) {
  bool even = true;
  for (int i = 0; i < 9; i++) even = even && (i == 4 || k[i] == k[0]);
  return even;
}
SHARED uint8_t augment_filter_even(int neighbours, int center, float around, float middle) {
  return saturate<uint8_t>((float)neighbours * around + (float)center * middle);
}
