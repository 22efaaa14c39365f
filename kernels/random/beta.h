// SPDX-License-Identifier: Apache-2.0
// The beta distribution as x / (x + y) of two gamma variates. Marsaglia, Tsang: A Simple Method for Generating Gamma
// Variables (ACM TOMS 2000): d v with v = (1 + c z)^3 for a normal z, if it is accepted by a uniform u. For shapes
// below 1: the variate of shape + 1 times u^(1/shape).
#pragma once
#include "random/distribution.h"

// Streams of an element: 1 has the first try for both variates, 2 the powers for shapes below 1. Further tries have
// their own streams.
constexpr uint32_t kFirstTry = 1, kPowers = 2, kFurther = 4;

struct GammaShape {
  double d, c, power;  // power: 1 / shape if shape is below 1, else 0
  bool boosted;
  SHARED explicit GammaShape(double shape)
      : d((shape < 1 ? shape + 1 : shape) - 1 / 3.0),
        c(1 / sqrt(9 * d)),
        power(shape < 1 ? 1 / shape : 0),
        boosted(shape < 1) {}
  SHARED double cube(double z) const {
    double v = 1 + c * z;
    return v * v * v;
  }
  // A sufficient test for acceptance; true in 9 of 10 cases.
  SHARED bool surely(double z, double u) const { return (1 + c * z > 0) & (u < 1 - 0.0331 * (z * z) * (z * z)); }
  SHARED bool accepts(double z, double u) const {
    if (surely(z, u)) return true;
    double v = cube(z);
    return v > 0 && log_positive(u) < 0.5 * z * z + d - d * v + d * log_positive(v);
  }
  // The logarithm of the variate, which does not underflow.
  SHARED double log_variate(double v, double u) const { return log_positive(d * v) + log_positive(u) * power; }
};

SHARED double beta_of(double x, double y) { return x / (x + y); }
SHARED double beta_of_logs(double x, double y) {
  double t = y - x;
  t = t < 700 ? t : 700;
  t = t > -700 ? t : -700;
  return 1 / (1 + exp_near(t));
}

// The accepted v of variate `which` (0 or 1). z and u: the first try.
SHARED double accepted_cube(const GammaShape &g, double z, double u, const DistributionArgs &r, uint32_t element,
                            uint32_t which) {
  for (uint32_t stream = kFurther + which; !g.accepts(z, u); stream += 2) {
    uint32_t w[4];
    double other;
    distribution_block(r, element, stream, w);
    normal_pair(open_unit_of(w[0]), unit_of(w[1]), z, other);
    u = open_unit_of(w[2]);
  }
  return g.cube(z);
}

SHARED double beta_variate(const GammaShape &a, const GammaShape &b, const DistributionArgs &r, uint32_t element) {
  uint32_t w[4], p[4];
  double z0, z1;
  distribution_block(r, element, kFirstTry, w);
  normal_pair(open_unit_of(w[0]), unit_of(w[1]), z0, z1);
  const double v = accepted_cube(a, z0, open_unit_of(w[2]), r, element, 0);
  const double x = accepted_cube(b, z1, open_unit_of(w[3]), r, element, 1);
  if (!a.boosted && !b.boosted) return beta_of(a.d * v, b.d * x);
  distribution_block(r, element, kPowers, p);
  return beta_of_logs(a.log_variate(v, open_unit_of(p[0])), b.log_variate(x, open_unit_of(p[1])));
}
