// SPDX-License-Identifier: Apache-2.0
#include "audio/spectrogram.h"

#include "audio/fft.h"
#include "core/kernel.h"

// work[i] = element i of the windows t, t + 1, ..., times the window function.
CLONES static void take_windows(Lanes *work, const float *x, int64_t n, int64_t t, int64_t windows,
                                const SpectrogramArgs a) {
  const int64_t first = a.first + t * a.window_step, last = first + (windows - 1) * a.window_step + a.window_length;
  if (first >= 0 && last <= n) {
    gather_lanes(work, x + first, a.window_step, a.window_length, windows);
  } else {
    for (int64_t lane = 0; lane < kLanes; lane++) {
      float *to = (float *)work + lane;
      for (int64_t i = 0, at = first + lane * a.window_step; i < a.window_length; i++, at++) {
        const bool is_inside = at >= 0 && at < n;
        const bool is_zero = lane >= windows || (!is_inside && !a.reflect);
        to[i * kLanes] = is_zero ? 0 : x[is_inside ? at : mirrored(at, n)];
      }
    }
  }
  for (int64_t i = 0; i < a.window_length; i++) work[i] *= a.window[i];
  for (int64_t i = a.window_length; i < a.nfft; i++) work[i] = Lanes{};
}

CLONES static void put_spectra(float *out, const Lanes *spectra, int64_t bins, int64_t t, int64_t windows,
                               int64_t total, int time_first) {
  const int64_t n = windows < kLanes ? windows : kLanes;
  if (time_first)
    scatter_lanes(out + t * bins, bins, spectra, bins, n);
  else
    write_lanes(out + t, total, spectra, bins, n);
}

static void run(const Tensor *out, const Tensor *in, const SpectrogramArgs &a, Scratch &scratch) {
  const std::shared_ptr<const RealFft> fft = RealFft::of_length(a.nfft);
  const int64_t bins = fft->bins(), windows = out->shape[a.time_first ? 0 : 1], n = in->volume();
  Lanes *work = scratch.array<Lanes>(fft->room(), 0), *spectra = scratch.array<Lanes>(bins, 1);
  for (int64_t t = 0; t < windows; t += kLanes) {
    take_windows(work, in->as<float>(), n, t, windows - t < kLanes ? windows - t : kLanes, a);
    fft->run(spectra, work, a.power);
    put_spectra(out->as<float>(), spectra, bins, t, windows - t, windows, a.time_first);
  }
}

EXPORT_KERNEL(spectrogram, SpectrogramArgs, run)
