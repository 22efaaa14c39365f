// SPDX-License-Identifier: Apache-2.0
#include "audio/power_spectrum.h"

#include "audio/fft.h"
#include "core/kernel.h"

CLONES static void take(Lanes *work, const float *x, int64_t between, int64_t pitch, int64_t n, int64_t nfft,
                        int64_t signals) {
  if (between == 1)
    gather_lanes(work, x, pitch, n, signals);
  else
    read_lanes(work, x, between, n, signals);
  for (int64_t i = n; i < nfft; i++) work[i] = Lanes{};
}

CLONES static void put(float *out, const Lanes *spectra, int64_t between, int64_t pitch, int64_t bins,
                       int64_t signals) {
  if (between == 1)
    scatter_lanes(out, pitch, spectra, bins, signals);
  else
    write_lanes(out, between, spectra, bins, signals);
}

static void run(const Tensor *out, const Tensor *in, const PowerSpectrumArgs &a, Scratch &scratch) {
  if (!out->volume()) return;
  const int64_t bins = a.nfft / 2 + 1, extent = in->shape[a.axis], n = extent < a.nfft ? extent : a.nfft;
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < a.axis; d++) outer *= in->shape[d];
  for (int d = a.axis + 1; d < in->ndim; d++) inner *= in->shape[d];
  if (inner == 1 && LongRealFft::takes(a.nfft)) {
    const std::shared_ptr<const LongRealFft> fft = LongRealFft::of_length(a.nfft);
    Lanes *work = scratch.array<Lanes>(fft->room(), 0);
    for (int64_t i = 0; i < outer; i++)
      fft->run(out->as<float>() + i * bins, in->as<float>() + i * extent, n, work, a.power);
    return;
  }
  const std::shared_ptr<const RealFft> fft = RealFft::of_length(a.nfft);
  Lanes *work = scratch.array<Lanes>(fft->room(), 0), *spectra = scratch.array<Lanes>(bins, 1);
  const float *x = in->as<float>();
  float *y = out->as<float>();
  if (inner == 1) {
    for (int64_t i = 0; i < outer; i += kLanes) {
      take(work, x + i * extent, 1, extent, n, a.nfft, outer - i);
      fft->run(spectra, work, a.power);
      put(y + i * bins, spectra, 1, bins, bins, outer - i);
    }
    return;
  }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i += kLanes) {
      take(work, x + o * extent * inner + i, inner, 0, n, a.nfft, inner - i);
      fft->run(spectra, work, a.power);
      put(y + o * bins * inner + i, spectra, inner, 0, bins, inner - i);
    }
}

EXPORT_KERNEL(power_spectrum, PowerSpectrumArgs, run)
