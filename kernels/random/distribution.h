// SPDX-License-Identifier: Apache-2.0
// Random numbers of a sample. Element i is a function of (key, epoch, position, i), so it does not depend on the thread
// or the time.
#pragma once
#include "core/philox.h"
#include "random/deviates.h"

struct DistributionArgs {
  int64_t key, position;
  double a, b;
  const double *table;
  int32_t n_table, epoch, kind;
};

// The values of `kind`.
enum Distribution : int32_t {
  kUniform,   // a + (b - a) u; below b if the output is floating point, rounded if it is an integer
  kNormal,    // mean a, standard deviation b
  kCoin,      // 1 with probability a, else 0
  kValues,    // one of the n_table values of the table, with equal probabilities
  kBeta,      // shapes a and b
  kIndex,     // 0 .. a - 1, with equal probabilities
  kWeighted,  // an index of the table, which holds cumulative probabilities
};

// The counter is that of kernels/core/philox.cpp; the stream is in its high bits.
SHARED void distribution_block(const DistributionArgs &r, uint32_t block, uint32_t stream, uint32_t words[4]) {
  Philox p{{(uint32_t)(uint64_t)r.key, (uint32_t)((uint64_t)r.key >> 32)}};
  words[0] = block;
  words[1] = (uint32_t)(uint64_t)r.position;
  words[2] = (uint32_t)((uint64_t)r.position >> 32) ^ stream << 16;
  words[3] = (uint32_t)r.epoch;
  p.block(words);
}

// The largest value below b: although u < 1, a + (b - a) u may be rounded up to b.
SHARED double limit_below(double b, double a, int dtype) {
  if (dtype == FLOAT64) return nextafter(b, a);
  if (dtype == FLOAT) return nextafterf((float)b, (float)a);
  return no_limit();
}
