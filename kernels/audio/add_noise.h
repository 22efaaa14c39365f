// SPDX-License-Identifier: Apache-2.0
// Adds another sound to a signal at a given signal-to-noise ratio.
#pragma once
#include "core/tensor.h"

struct AddNoiseArgs {
  double snr;     // signal-to-noise ratio in decibels
  int64_t start;  // start position in the noise, at least 0
};

// The factor for the noise, from the sums of squares of both.
SHARED float noise_gain(double signal, double noise, double snr) {
  const double wanted = signal * pow(10.0, snr / -10);
  return noise == 0 || wanted == 0 ? 0.0f : (float)sqrt(wanted / noise);
}
