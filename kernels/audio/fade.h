// SPDX-License-Identifier: Apache-2.0
// Gains at the beginning and the end of a signal.
#pragma once
#include "core/tensor.h"

enum FadeShape : int32_t { FADE_LINEAR, FADE_EXPONENTIAL, FADE_LOGARITHMIC, FADE_QUARTER_SINE, FADE_HALF_SINE };

struct FadeArgs {
  int64_t fade_in, fade_out;  // length of each fade in samples, at least 0
  int32_t shape;
};

// The gain of sample i of a fade of n >= 1 samples.
SHARED float fade_gain(int64_t i, int64_t n, int shape) {
  const double t = n > 1 ? (double)i / (double)(n - 1) : 0, pi = 3.14159265358979323846;
  double gain = t;
  if (shape == FADE_EXPONENTIAL) gain = exp2(t - 1) * t;
  if (shape == FADE_LOGARITHMIC) gain = 1 + log10(0.1 + t);
  if (shape == FADE_QUARTER_SINE) gain = sin(pi / 2 * t);
  if (shape == FADE_HALF_SINE) gain = (1 - cos(pi * t)) / 2;
  return (float)(gain < 0 ? 0 : gain > 1 ? 1 : gain);
}
// The product of both gains of sample i of n.
SHARED float fade_gain(int64_t i, int64_t n, const FadeArgs &a) {
  const float rising = i < a.fade_in ? fade_gain(i, a.fade_in, a.shape) : 1;
  const int64_t left = n - 1 - i;
  return left < a.fade_out ? rising * fade_gain(left, a.fade_out, a.shape) : rising;
}
