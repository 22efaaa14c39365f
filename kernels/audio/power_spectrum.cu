// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes Fft::kLanes signals at a time.
#include "audio/gpu_fft.h"
#include "audio/power_spectrum.h"

template <class Fft, bool IS_SHARED, int POWER>
DEVICE void power_spectrum_signals(const Launch &l, int64_t room) {
  Fft fft(memory_of_block<IS_SHARED>(l, room));
  FOR_SAMPLES(sample, l) {
    const PowerSpectrumArgs a = ((const PowerSpectrumArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    if (volume_of(out) == 0) continue;
    const int64_t extent = in.shape[a.axis], bins = a.nfft / 2 + 1;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < in.ndim; d++) (d < a.axis ? outer : inner) *= d == a.axis ? 1 : in.shape[d];
    const int64_t signals = outer * inner, groups = (signals + Fft::kLanes - 1) / Fft::kLanes;
    if (blockIdx.x >= groups) continue;
    const int length = (int)(extent < a.nfft ? extent : a.nfft);
    const float *x = in.as<float>();
    float *y = out.as<float>();
    fft.begin(a.nfft);
    const bool is_last = inner == 1;
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t first = group * Fft::kLanes;
      const int here = (int)(signals - first < Fft::kLanes ? signals - first : Fft::kLanes);
      // Element 0 of a signal that has so many elements.
      const auto begin_of = [&](int w, int64_t elements) {
        const int64_t signal = first + w, o = signal / inner;
        return o * elements * inner + signal - o * inner;
      };
      const auto fetch = [&](auto &to, int w, int j, int m) {
        const float *const from = x + begin_of(w, extent);
#pragma unroll
        for (int k = 0; k < (int)(sizeof to / sizeof to[0]); k++) {
          const int i = 2 * (j + k * m);
          to[k].x = i < length ? load(from + i * inner) : 0.0f;
          to[k].y = i + 1 < length ? load(from + (i + 1) * inner) : 0.0f;
        }
      };
      fft.powers(here, is_last, fetch, is_last, [&](int k, int w, float power) {
        y[begin_of(w, bins) + k * inner] = POWER == 1 ? sqrtf(power) : power;
      });
    }
  }
}
