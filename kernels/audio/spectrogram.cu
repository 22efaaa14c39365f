// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes Fft::kLanes windows at a time.
#include "audio/gpu_windows.h"

template <class Fft, bool IS_SHARED, int POWER, int LENGTH>
DEVICE void spectrogram_windows(const Launch &l, int64_t room) {
  Fft fft(memory_of_block<IS_SHARED>(l, room));
  FOR_SAMPLES(sample, l) {
    const SpectrogramArgs a = ((const SpectrogramArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const int64_t windows = out.shape[a.time_first ? 0 : 1], bins = a.nfft / 2 + 1;
    const int64_t groups = (windows + Fft::kLanes - 1) / Fft::kLanes;
    if (blockIdx.x >= groups) continue;
    Windows<LENGTH> from(a, l.tensors[1][sample]);
    fft.begin(a.nfft);
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t t = from.t = group * Fft::kLanes, pitch = a.time_first ? 1 : windows;
      const int here = (int)(windows - t < Fft::kLanes ? windows - t : Fft::kLanes);
      float *const y = out.as<float>() + (a.time_first ? t * bins : t);
      fft.template powers<POWER>(here, true, from, a.time_first, [&](int k, int w, float power) {
        y[k * pitch + (a.time_first ? w * bins : w)] = power;
      });
    }
  }
}
