// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes LANES windows at a time, side by side in its memory.
#include "audio/gpu_fft.h"
#include "audio/spectrogram.h"

template <class Fft, int LANES, bool IS_SHARED>
DEVICE void spectrogram_windows(const Launch &l, int64_t room) {
  bool is_ready = false;
  FOR_SAMPLES(sample, l) {
    const SpectrogramArgs a = ((const SpectrogramArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    const int64_t n = volume_of(in), windows = out.shape[a.time_first ? 0 : 1], bins = a.nfft / 2 + 1;
    const int64_t groups = (windows + LANES - 1) / LANES;
    if (blockIdx.x >= groups) continue;
    const float *x = in.as<float>();
    float *y = out.as<float>();
    GpuRealFft<Fft, LANES, IS_SHARED> fft(a.nfft, memory_of_block<IS_SHARED>(l, room), is_ready);
    is_ready = true;
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      const int64_t t = group * LANES, first = a.first + t * a.window_step;
      const int here = (int)(windows - t < LANES ? windows - t : LANES);
      __syncthreads();
      for (int item = threadIdx.x; item < a.nfft * LANES; item += blockDim.x) {
        const int w = item / a.nfft, i = item - w * a.nfft;
        const int64_t at = first + (int64_t)w * a.window_step + i;
        const bool is_inside = at >= 0 && at < n, is_zero = w >= here || i >= a.window_length;
        fft.put(i, w,
                is_zero || (!is_inside && !a.reflect)
                    ? 0.0f
                    : load(x + (is_inside ? at : mirrored(at, n))) * load(a.window + i));
      }
      fft.run();
      fft.each_power(here, a.time_first, [&](int k, int w, float power) {
        const float value = a.power == 1 ? sqrtf(power) : power;
        y[a.time_first ? (t + w) * bins + k : k * windows + t + w] = value;
      });
    }
  }
}
