// SPDX-License-Identifier: Apache-2.0
// The Poisson distribution. Small means: inversion, which adds up probabilities until they exceed a uniform number.
// Larger means: transformed rejection (Hoermann, The transformed rejection method for generating Poisson random
// variables, Insurance: Mathematics and Economics 12, 1993, algorithm PTRS). Very large means: normal approximation.
#pragma once
#include "random/distribution.h"

constexpr double kInversion = 32, kRejection = 1e9;  // largest means by inversion and by rejection
constexpr int kMostInversion = 128;                  // P(k > this) < 2^-32 for means up to kInversion

// Cumulative probabilities for a mean up to kInversion, in sequence.
struct PoissonSum {
  double mean, probability, sum;
  int32_t k = 0;
  SHARED explicit PoissonSum(double m) : mean(m), probability(exp_near(-m)), sum(probability) {}
  SHARED void next() {
    k++;
    probability *= mean / k;
    sum += probability;
  }
};

SHARED int32_t poisson_by_inversion(double mean, uint32_t word) {
  const double u = unit_of(word);
  PoissonSum s(mean);
  while (u >= s.sum && s.k < kMostInversion) s.next();
  return s.k;
}

// log(k!) for k >= 0: Stirling's series.
SHARED double log_factorial(double k) {
  double x = k + 1, below = 0;
  for (; x < 10; x += 1) below += log_positive(x);
  const double y = 1 / (x * x);
  return (x - 0.5) * log_positive(x) - x + 0.91893853320467274178 +
         (1 / 12. - y * (1 / 360. - y * (1 / 1260. - y * (1 / 1680.)))) / x - below;
}

// Uses streams from 1 on; stream 0 has the word for inversion.
SHARED double poisson_by_rejection(double mean, const DistributionArgs &r, uint32_t element) {
  const double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (uint32_t stream = 1;; stream++) {
    uint32_t w[4];
    distribution_block(r, element, stream, w);
    if (mean > kRejection) {
      double z, other;
      normal_pair(open_unit_of(w[0]), unit_of(w[1]), z, other);
      return floor(mean + root * z + 0.5);
    }
    for (int i = 0; i < 4; i += 2) {
      const double u = open_unit_of(w[i]) - 0.5, v = open_unit_of(w[i + 1]);
      const double us = 0.5 - (u < 0 ? -u : u);
      const double k = floor((2 * a / us + b) * u + mean + 0.43);
      if (us >= 0.07 && v <= v_r) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      if (log_positive(v) + log_positive(inverse_alpha) - log_positive(a / (us * us) + b) <=
          k * log_positive(mean) - mean - log_factorial(k))
        return k;
    }
  }
}

// `word`: the element's word of stream 0.
SHARED double poisson(double mean, uint32_t word, const DistributionArgs &r, uint32_t element) {
  return mean <= kInversion ? poisson_by_inversion(mean, word) : poisson_by_rejection(mean, r, element);
}
