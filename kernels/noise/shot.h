// SPDX-License-Identifier: Apache-2.0
// Noise of counting: an element becomes a number of the Poisson distribution whose mean it is, in units of `factor`.
#pragma once
#include "noise/noise.h"
#include "random/poisson.h"

struct ShotArgs {
  uint64_t key, position;
  double factor;
  uint32_t epoch;
};

template <class T>
SHARED T counted(T x, double factor, uint32_t word, const DistributionArgs &r, uint32_t element) {
  if (factor == 0) return x;
  const double mean = (double)x / factor;
  if (mean > 0 && mean < 1e300) return saturate<T>(poisson(mean, word, r, element) * factor);
  // Infinity and NaN stay; nothing is counted where there is nothing.
  return mean > 0 || mean != mean ? x : T(0);
}
