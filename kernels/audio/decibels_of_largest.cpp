// SPDX-License-Identifier: Apache-2.0
#include "audio/decibels_of_largest.h"

#include <cfloat>

#include "core/kernel.h"

CLONES static float largest(const float *x, int64_t n) {
  float most[32];
  for (float &m : most) m = -FLT_MAX;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 32; k++) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
  for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
  for (int k = 1; k < 32; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
  return most[0];
}

CLONES static void convert(float *__restrict out, const float *__restrict in, int64_t n, const DecibelsOfLargestArgs a,
                           float unit) {
  for (int64_t i = 0; i < n; i++) out[i] = decibels(in[i], unit, a.multiplier, a.smallest);
}

static void run(const Tensor *out, const Tensor *in, const DecibelsOfLargestArgs &a, Scratch &) {
  const int64_t n = in->volume();
  const float found = largest(in->as<float>(), n);
  convert(out->as<float>(), in->as<float>(), n, a, 1 / (found > 0 ? found : 1));
}

EXPORT_KERNEL(decibels_of_largest, DecibelsOfLargestArgs, run)
