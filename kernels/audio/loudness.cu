// SPDX-License-Identifier: Apache-2.0
// form: own
// A thread filters a step of 100 ms, beginning two steps earlier with a zero state: its effect has vanished by then
// (the poles of the high-pass fall by e^-23 in 100 ms). Scratch memory: a gain per sample, then `most` energies per
// sample.
#include "audio/loudness.h"
#include "core/gpu.h"

DEVICE double *loudness_energies(const Launch &l, int sample, int64_t most) {
  return (double *)l.scratch + l.n + sample * most;
}

DEVICE void loudness_steps(const Launch &l, int64_t most) {
  FOR_SAMPLES(sample, l) {
    const LoudnessArgs a = ((const LoudnessArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    if (volume_of(in) == 0) continue;
    const float *x = in.as<float>();
    const int64_t n = in.shape[0], channels = in.ndim > 1 ? in.shape[1] : 1, step = loudness_step(a.sample_rate);
    const int64_t steps = (n + step - 1) / step;
    double *energies = loudness_energies(l, sample, most);
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < steps; k += (int64_t)gridDim.x * blockDim.x) {
      const int64_t begin = k * step, end = begin + step < n ? begin + step : n;
      double energy = 0;
      for (int64_t c = 0; c < channels; c++) {
        KWeighting filter(a.sample_rate);
        for (int64_t i = begin - 2 * step > 0 ? begin - 2 * step : 0; i < begin; i++)
          filter.next((double)load(x + i * channels + c));
        double sum = 0;
        for (int64_t i = begin; i < end; i++) {
          const double y = filter.next((double)load(x + i * channels + c));
          sum += y * y;
        }
        energy += loudness_weight(c) * sum;
      }
      energies[k] = energy;
    }
  }
}

DEVICE void loudness_gains(const Launch &l, int64_t most) {
  for (int sample = blockIdx.x * blockDim.x + threadIdx.x; sample < l.n; sample += gridDim.x * blockDim.x) {
    const LoudnessArgs a = ((const LoudnessArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const int64_t n = volume_of(in) ? in.shape[0] : 0, step = loudness_step(a.sample_rate);
    const double *energies = loudness_energies(l, sample, most);
    double total = 0;
    for (int64_t k = 0; k < (n + step - 1) / step; k++) total += energies[k];
    ((double *)l.scratch)[sample] = loudness_gain(energies, total, n, a);
  }
}

DEVICE void loudness_scale(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor in = l.tensors[1][sample];
    const float *x = in.as<float>(), gain = (float)((const double *)l.scratch)[sample];
    float *y = l.tensors[0][sample].as<float>();
    const int64_t n = volume_of(in);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      y[i] = load(x + i) * gain;
  }
}
