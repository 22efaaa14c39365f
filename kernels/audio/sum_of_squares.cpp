// SPDX-License-Identifier: Apache-2.0
#include "audio/sum_of_squares.h"

#include "core/kernel.h"

CLONES double sum_of_squares(const float *x, int64_t n) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; k++) sums[k] += (double)x[i + k] * x[i + k];
  for (; i < n; i++) sums[i % 8] += (double)x[i] * x[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}
