// SPDX-License-Identifier: Apache-2.0
// The integrated loudness of ITU-R BS.1770-4, and the gain to reach another.
#pragma once
#include "core/tensor.h"

struct LoudnessArgs {
  double sample_rate, target;
};

// Blocks of 400 ms overlap by three quarters, so energies are summed in steps of 100 ms, four per block.
SHARED int64_t loudness_step(double sample_rate) { return (int64_t)(sample_rate / 10 + 0.5); }

// The K-weighting: a shelf that lifts high frequencies, then a high-pass. The standard gives coefficients for 48 kHz;
// these come from the underlying analogue filters by the bilinear transform, for any rate.
struct KWeighting {
  double b0, b1, b2, a1, a2;  // the shelf
  double c1, c2;              // the high-pass with numerator 1 -2 1; its other factor is in the shelf's
  double s1, s2, t1, t2;      // states

  SHARED explicit KWeighting(double sample_rate) : s1(0), s2(0), t1(0), t2(0) {
    double k = warped(38.13547087602444, sample_rate), q = 0.5003270373238773, a0 = 1 + k / q + k * k;
    c1 = 2 * (k * k - 1) / a0;
    c2 = (1 - k / q + k * k) / a0;
    // The standard's numerator is for 48 kHz. This keeps the gain of high frequencies at other rates.
    const double at_48 = warped(38.13547087602444, 48000), scale = (1 + at_48 / q + at_48 * at_48) / a0;
    k = warped(1681.974450955533, sample_rate), q = 0.7071752369554196, a0 = 1 + k / q + k * k;
    const double high = pow(10.0, 3.999843853973347 / 20), band = pow(high, 0.4996667741545416);
    b0 = scale * (high + band * k / q + k * k) / a0;
    b1 = scale * 2 * (k * k - high) / a0;
    b2 = scale * (high - band * k / q + k * k) / a0;
    a1 = 2 * (k * k - 1) / a0;
    a2 = (1 - k / q + k * k) / a0;
  }
  SHARED static double warped(double frequency, double rate) { return tan(3.14159265358979323846 * frequency / rate); }
  SHARED double next(double x) {
    const double y = b0 * x + s1;
    s1 = b1 * x - a1 * y + s2;
    s2 = b2 * x - a2 * y;
    const double z = y + t1;
    t1 = -2 * y - c1 * z + t2;
    t2 = y - c2 * z;
    return z;
  }
};

SHARED double loudness_weight(int64_t channel) { return channel < 3 ? 1 : 1.41; }
SHARED double loudness_of(double mean_square) { return -0.691 + 10 * log10(mean_square); }

// The gain for a signal of n samples with these weighted energies of its whole steps; `total` is the energy of all of
// it.
SHARED double loudness_gain(const double *energies, double total, int64_t n, const LoudnessArgs &a) {
  const int64_t step = loudness_step(a.sample_rate), blocks = n / step - 3;
  double gate = -70, mean = 0;
  if (blocks < 1) {
    mean = n ? total / (double)n : 0;
    return mean > 0 && loudness_of(mean) > gate ? pow(10.0, (a.target - loudness_of(mean)) / 20) : 1;
  }
  for (int pass = 0; pass < 2; pass++) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < blocks; i++) {
      const double block = (energies[i] + energies[i + 1] + energies[i + 2] + energies[i + 3]) / (double)(4 * step);
      if (block > 0 && loudness_of(block) > gate) sum += block, count++;
    }
    if (!count) return 1;
    mean = sum / (double)count;
    const double relative = loudness_of(mean) - 10;
    gate = relative > gate ? relative : gate;
  }
  return pow(10.0, (a.target - loudness_of(mean)) / 20);
}
