// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes LANES signals at a time, side by side in its memory.
#include "audio/gpu_fft.h"
#include "audio/power_spectrum.h"

template <class Fft, int LANES, bool IS_SHARED>
DEVICE void power_spectrum_signals(const Launch &l, int64_t room) {
  int ready = 0;  // the length whose tables are in memory
  FOR_SAMPLES(sample, l) {
    const PowerSpectrumArgs a = ((const PowerSpectrumArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    if (volume_of(out) == 0) continue;
    const int64_t extent = in.shape[a.axis], bins = a.nfft / 2 + 1;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < in.ndim; d++) (d < a.axis ? outer : inner) *= d == a.axis ? 1 : in.shape[d];
    const int64_t signals = outer * inner, groups = (signals + LANES - 1) / LANES;
    if (blockIdx.x >= groups) continue;
    const float *x = in.as<float>();
    float *y = out.as<float>();
    GpuRealFft<Fft, LANES, IS_SHARED> fft(a.nfft, memory_of_block<IS_SHARED>(l, room), a.nfft == ready);
    ready = a.nfft;
    const bool is_last = inner == 1;
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t first = group * LANES;
      const int here = (int)(signals - first < LANES ? signals - first : LANES);
      // Element 0 of a signal that has so many elements.
      const auto begin_of = [&](int w, int64_t elements) {
        const int64_t signal = first + w, o = signal / inner;
        return o * elements * inner + signal - o * inner;
      };
      __syncthreads();
      for (int64_t item = threadIdx.x; item < (int64_t)a.nfft * LANES; item += blockDim.x) {
        const int w = (int)(is_last ? item / a.nfft : item % LANES);
        const int i = (int)(is_last ? item - (int64_t)w * a.nfft : item / LANES);
        fft.put(i, w, w < here && i < extent ? load(x + begin_of(w, extent) + i * inner) : 0.0f);
      }
      fft.run();
      fft.each_power(here, is_last, [&](int k, int w, float power) {
        y[begin_of(w, bins) + k * inner] = a.power == 1 ? sqrtf(power) : power;
      });
    }
  }
}
