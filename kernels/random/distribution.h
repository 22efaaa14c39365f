// SPDX-License-Identifier: Apache-2.0
// Random numbers of one sample: element i is a function of (key, epoch, position, i), so it does not matter which
// thread makes it, or when.
#pragma once
#include "core/philox.h"

struct DistributionArgs {
  int64_t key, position;
  double a, b;
  const double *table;
  int32_t n_table, epoch, kind;
};

// What `kind` means.
enum Distribution : int32_t {
  kUniform,   // a + (b - a) u; below b where the output is a floating point number, rounded where it is an integer
  kNormal,    // mean a, standard deviation b
  kCoin,      // 1 with probability a, else 0
  kValues,    // one of the n_table values of the table
  kBeta,      // shapes a and b
  kIndex,     // 0 .. a - 1, each with the same probability
  kWeighted,  // an index of the table, which holds cumulative probabilities
};

// The counter is that of kernels/core/philox.cpp: a stream has high bits of its own.
SHARED void distribution_block(const DistributionArgs &r, uint32_t block, uint32_t stream, uint32_t words[4]) {
  Philox p{{(uint32_t)(uint64_t)r.key, (uint32_t)((uint64_t)r.key >> 32)}};
  words[0] = block;
  words[1] = (uint32_t)(uint64_t)r.position;
  words[2] = (uint32_t)((uint64_t)r.position >> 32) ^ stream << 16;
  words[3] = (uint32_t)r.epoch;
  p.block(words);
}

// In (0, 1), never an end.
SHARED double open_unit(uint32_t word) { return (word + 0.5) * (1 / 4294967296.0); }

// The logarithm of a variate of the gamma distribution. Marsaglia, Tsang: A Simple Method for Generating Gamma
// Variables (ACM TOMS 2000); for shapes below 1 that of shape + 1, times u^(1/shape). As logarithm it does not
// underflow. Each try has a stream of its own; 95 % of the first ones are accepted.
SHARED double log_gamma_variate(double shape, const DistributionArgs &r, uint32_t element, uint32_t stream) {
  double boosted = shape < 1 ? shape + 1 : shape, d = boosted - 1 / 3.0, c = 1 / sqrt(9 * d);
  for (uint32_t attempt = 0;; attempt++) {
    uint32_t w[4];
    distribution_block(r, element, stream + 2 * attempt, w);
    double x = sqrt(-2 * log(open_unit(w[0]))) * cos(6.283185307179586 * open_unit(w[1]));
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (log(open_unit(w[2])) >= 0.5 * x * x + d - d * v + d * log(v)) continue;
    return log(d * v) + (shape < 1 ? log(open_unit(w[3])) / shape : 0);
  }
}

// x / (x + y) of two gamma variates.
SHARED double beta_variate(const DistributionArgs &r, uint32_t element) {
  return 1 / (1 + exp(log_gamma_variate(r.b, r, element, 2) - log_gamma_variate(r.a, r, element, 1)));
}
