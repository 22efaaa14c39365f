// SPDX-License-Identifier: Apache-2.0
#include "audio/loudness.h"

#include "core/kernel.h"

CLONES static void scale(float *__restrict out, const float *__restrict in, int64_t n, float gain) {
  for (int64_t i = 0; i < n; i++) out[i] = in[i] * gain;
}

static void run(const Tensor *out, const Tensor *in, const LoudnessArgs &a, Scratch &scratch) {
  if (!out->volume()) return;
  const int64_t n = in->shape[0], channels = in->volume() / n, step = loudness_step(a.sample_rate);
  const int64_t steps = (n + step - 1) / step;
  double *energies = scratch.array<double>(steps), total = 0;
  for (int64_t k = 0; k < steps; k++) energies[k] = 0;
  for (int64_t c = 0; c < channels; c++) {
    KWeighting filter(a.sample_rate);
    const float *x = in->as<float>() + c;
    for (int64_t k = 0; k < steps; k++) {
      double sum = 0;
      for (int64_t i = k * step, end = i + step < n ? i + step : n; i < end; i++) {
        const double y = filter.next(x[i * channels]);
        sum += y * y;
      }
      energies[k] += loudness_weight(c) * sum;
    }
  }
  for (int64_t k = 0; k < steps; k++) total += energies[k];
  scale(out->as<float>(), in->as<float>(), in->volume(), (float)loudness_gain(energies, total, n, a));
}

EXPORT_KERNEL(loudness, LoudnessArgs, run)
