// SPDX-License-Identifier: Apache-2.0
// Shot noise: replaces an element by a Poisson-distributed number with this mean, in units of `factor`.
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
  // Infinity and NaN are kept. Zero and negative elements become 0.
  return mean > 0 || mean != mean ? x : T(0);
}
