// SPDX-License-Identifier: Apache-2.0
#include "audio/add_noise.h"

#include <algorithm>
#include <cmath>

#include "audio/sum_of_squares.h"
#include "core/kernel.h"

CLONES static void add(float *__restrict out, const float *__restrict in, const float *__restrict noise, int64_t n,
                       float gain) {
  for (int64_t i = 0; i < n; i++) out[i] = in[i] + gain * noise[i];
}
// The same noise for all channels.
CLONES static void add_to_channels(float *__restrict out, const float *__restrict in, const float *__restrict noise,
                                   int64_t n, int64_t channels, float gain) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < channels; c++) out[i * channels + c] = in[i * channels + c] + gain * noise[i];
}

static void run(const Tensor *out, const Tensor *in, const AddNoiseArgs &a, Scratch &) {
  const int64_t n = in[0].shape[0], channels = in[0].ndim > 1 ? in[0].shape[1] : 1;
  const int64_t length = in[1].shape[0], noises = in[1].ndim > 1 ? in[1].shape[1] : 1;
  if (!out->volume()) return;
  const float *x = in[0].as<float>(), *noise = in[1].as<float>();
  // Calls f(position in the signal, position in the noise, length), as the noise repeats.
  const auto each_stretch = [&](auto f) {
    for (int64_t at = 0, from = a.start % length, m; at < n; at += m, from = 0) {
      m = std::min(n - at, length - from);
      f(at, from, m);
    }
  };
  double power = 0;
  each_stretch([&](int64_t, int64_t from, int64_t m) { power += sum_of_squares(noise + from * noises, m * noises); });
  power /= noises;
  const float gain = noise_gain(sum_of_squares(x, n * channels) / channels, power, a.snr);
  float *y = out->as<float>();
  each_stretch([&](int64_t at, int64_t from, int64_t m) {
    if (noises == channels)
      add(y + at * channels, x + at * channels, noise + from * noises, m * channels, gain);
    else
      add_to_channels(y + at * channels, x + at * channels, noise + from, m, channels, gain);
  });
}

EXPORT_KERNEL(add_noise, AddNoiseArgs, run)
