// SPDX-License-Identifier: Apache-2.0
// The signal is cut into segments that overlap by the length of the response. kLanes transforms are computed in
// parallel, each of two segments, as its real and imaginary parts: the response is real, so they stay separate.
#include "audio/reverb.h"

#include <algorithm>
#include <cmath>

#include "audio/fft.h"
#include "audio/sum_of_squares.h"
#include "core/kernel.h"

namespace {

constexpr int64_t kSegments = 2 * kLanes;

// Fills z with segments of n elements: segment s begins at first + s * step in the signal.
void take_segments(Complex *z, int64_t n, const float *x, int64_t length, int64_t channels, int64_t first,
                   int64_t step) {
  for (int64_t s = 0; s < kSegments; s++) {
    float *to = (float *)z + (s % 2) * kLanes + s / 2;
    const int64_t from = first + s * step;
    const int64_t begin = std::clamp<int64_t>(-from, 0, n), end = std::clamp<int64_t>(length - from, begin, n);
    for (int64_t i = 0; i < begin; i++) to[i * kSegments] = 0;
    for (int64_t i = begin; i < end; i++) to[i * kSegments] = x[(from + i) * channels];
    for (int64_t i = end; i < n; i++) to[i * kSegments] = 0;
  }
}

// to = conj(z * response), where `filter` is the response's transform, in natural order of frequencies.
CLONES void apply(Complex *to, const Complex *z, const float *filter, const Fft &fft, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const int64_t p = fft.place(k);
    const float re = filter[2 * p], im = filter[2 * p + 1];
    to[k].re = z[p].re * re - z[p].im * im;
    to[k].im = -(z[p].re * im + z[p].im * re);
  }
}

// Writes the last `step` elements of each segment to the output, from `first` on.
void put_segments(float *y, int64_t length, int64_t channels, const Complex *z, const Fft &fft, int64_t n,
                  int64_t first, int64_t step) {
  for (int64_t s = 0; s < kSegments; s++) {
    const float *from = (const float *)z + (s % 2) * kLanes + s / 2;
    const int64_t to = first + s * step, count = std::min(step, length - to);
    const float factor = (s % 2 ? -1.0f : 1.0f) / n;
    for (int64_t i = 0; i < count; i++) y[(to + i) * channels] = from[fft.place(n - step + i) * kSegments] * factor;
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const ReverbArgs &a, Scratch &scratch) {
  if (!out->volume()) return;
  const int64_t n = in[0].shape[0], channels = in[0].volume() / n;
  const int64_t taps = in[1].shape[0], responses = in[1].volume() / taps;
  const float *x = in[0].as<float>(), *h = in[1].as<float>();
  float *y = out->as<float>();
  int64_t delay = 0;
  if (!a.keep_delay) {
    const auto less = [](float p, float q) { return std::fabs(p) < std::fabs(q); };
    delay = (std::max_element(h, h + taps * responses, less) - h) / responses;
  }
  int64_t size = 64;
  while (size < 2 * taps) size *= 2;
  const int64_t step = size - taps + 1;  // new elements per segment
  const std::shared_ptr<const Fft> fft = Fft::of_length(size);
  Complex *z = scratch.array<Complex>(size, 0), *product = scratch.array<Complex>(size, 1);
  float *filter = scratch.array<float>(2 * size, 2);
  for (int64_t c = 0; c < channels; c++) {
    if (c < responses) {
      for (int64_t i = 0; i < size; i++) z[i] = {Lanes{} + (i < taps ? h[i * responses + c] : 0.0f), Lanes{}};
      fft->run(z, nullptr);
      for (int64_t p = 0; p < size; p++) filter[2 * p] = z[p].re[0], filter[2 * p + 1] = z[p].im[0];
    }
    for (int64_t first = 0; first < n; first += kSegments * step) {
      take_segments(z, size, x + c, n, channels, first + delay - (taps - 1), step);
      fft->run(z, nullptr);
      apply(product, z, filter, *fft, size);
      fft->run(product, nullptr);
      put_segments(y + c, n, channels, product, *fft, size, first, step);
    }
  }
  if (!a.normalize) return;
  const double before = sum_of_squares(x, n * channels), after = sum_of_squares(y, n * channels);
  if (after == 0) return;
  const float gain = (float)std::sqrt(before / after);
  for (int64_t i = 0; i < n * channels; i++) y[i] *= gain;
}

EXPORT_KERNEL(reverb, ReverbArgs, run)
