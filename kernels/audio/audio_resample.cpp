// SPDX-License-Identifier: Apache-2.0
#include "audio/audio_resample.h"

#include "audio/sinc_filter.h"
#include "core/kernel.h"

template <class T>
CLONES static void to_float(float *__restrict out, const T *__restrict in, int64_t n, float factor, float offset) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)in[i] * factor + offset;
}
template <class T>
CLONES static void from_float(T *__restrict out, const float *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = saturate<T>(in[i]);
}

template <class F>
static void for_signals(int dtype, F f) {
  for_types<uint8_t, uint16_t, uint32_t, int8_t, int16_t, int32_t, float>(dtype, f);
}

static void run(const Tensor *out, const Tensor *in, const AudioResampleArgs &a, Scratch &scratch) {
  const int64_t n = in->shape[0], n_out = out->shape[0], channels = in->ndim > 1 ? in->shape[1] : 1;
  if (!out->volume()) return;
  const float *x = in->as<float>();
  if (in->dtype != FLOAT || a.factor != 1 || a.offset != 0) {
    float *converted = scratch.array<float>(n * channels, 0);
    for_signals(in->dtype, [&](auto t) {
      using T = decltype(t);
      to_float(converted, in->as<T>(), n * channels, a.factor, a.offset);
    });
    x = converted;
  }
  float *y = out->dtype == FLOAT ? out->as<float>() : scratch.array<float>(n_out * channels, 1);
  resample_channels(y, n_out, x, n, channels, a.in_rate, a.out_rate, a.lobes, a.antialias, scratch, 2);
  if (out->dtype == FLOAT) return;
  for_signals(out->dtype, [&](auto t) {
    using T = decltype(t);
    from_float(out->as<T>(), (const float *)y, n_out * channels);
  });
}

EXPORT_KERNEL(audio_resample, AudioResampleArgs, run)
