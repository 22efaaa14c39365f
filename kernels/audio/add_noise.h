// SPDX-License-Identifier: Apache-2.0
// Another sound added to a signal, as loud as a signal-to-noise ratio says.
#pragma once
#include "core/tensor.h"

struct AddNoiseArgs {
  double snr;     // signal-to-noise ratio in decibels
  int64_t start;  // where in the noise it begins, at least 0
};

// What the noise is multiplied with, from the sums of the squares of both.
SHARED float noise_gain(double signal, double noise, double snr) {
  const double wanted = signal * pow(10.0, snr / -10);
  return noise == 0 || wanted == 0 ? 0.0f : (float)sqrt(wanted / noise);
}
