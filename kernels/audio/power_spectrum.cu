// SPDX-License-Identifier: Apache-2.0
// form: own
// A block of threads takes Fft::kLanes signals at a time.
#include "audio/gpu_fft.h"
#include "audio/power_spectrum.h"

// Signals along an axis, each zero-padded or cut.
struct Signals {
  const float *x;
  int64_t extent, inner;  // elements of a signal, and the distance between them
  int length;
  int64_t first = 0;  // the first of the signals taken at a time

  // The offset of a signal that has `elements` elements.
  DEVICE int64_t begin_of(int w, int64_t elements) const {
    const int64_t signal = first + w, o = signal / inner;
    return o * elements * inner + signal - o * inner;
  }
  template <int N>
  DEVICE bool all(float2 (&to)[N], int w, int j, int m) const {
    const float *const from = x + begin_of(w, extent);
#pragma unroll
    for (int k = 0; k < N; k++) to[k] = two(from, 2 * (j + k * m));
    return true;
  }
  DEVICE float2 one(int w, int i) const { return two(x + begin_of(w, extent), 2 * i); }
  DEVICE float2 two(const float *from, int i) const {
    return make_float2(i < length ? load(from + i * inner) : 0.0f,
                       i + 1 < length ? load(from + (i + 1) * inner) : 0.0f);
  }
};

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
    Signals from = {in.as<float>(), extent, inner, (int)(extent < a.nfft ? extent : a.nfft)};
    float *y = out.as<float>();
    fft.begin(a.nfft);
    const bool is_last = inner == 1;
    for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
      from.first = group * Fft::kLanes;
      const int here = (int)(signals - from.first < Fft::kLanes ? signals - from.first : Fft::kLanes);
      fft.template powers<POWER>(here, is_last, from, is_last,
                                 [&](int k, int w, float power) { y[from.begin_of(w, bins) + k * inner] = power; });
    }
  }
}
