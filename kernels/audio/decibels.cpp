// SPDX-License-Identifier: Apache-2.0
#include "audio/decibels.h"

#include "core/kernel.h"

CLONES static void convert(float *__restrict out, const float *__restrict in, int64_t n, const DecibelsArgs a) {
  const float unit = 1 / a.reference;
  for (int64_t i = 0; i < n; i++) out[i] = decibels(in[i], unit, a.multiplier, a.smallest);
}

static void run(const Tensor *out, const Tensor *in, const DecibelsArgs &a, Scratch &) {
  convert(out->as<float>(), in->as<float>(), in->volume(), a);
}

EXPORT_KERNEL(decibels, DecibelsArgs, run)
