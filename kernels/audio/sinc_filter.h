// SPDX-License-Identifier: Apache-2.0
// Resamples signals with a windowed sinc.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"

// Weights of a Hann-windowed sinc at `phases` positions between two input samples, linearly interpolated between them.
class SincFilter {
 public:
  // `lobes` zeros of the sinc on either side. A `bandwidth` below 1 widens it accordingly, for downsampling, with finer
  // resolution. At 1 its weights equal DALI's.
  SincFilter(int lobes, double bandwidth);
  // out[i * out_step] is the signal at (first + i) * in_rate / out_rate, for i < n. `in` points to where element 0 of
  // the signal is or would be; only the range given by `needs` is read.
  void run(float *out, int64_t out_step, int64_t first, int64_t n, const float *in, double in_rate,
           double out_rate) const;
  struct Span {
    int64_t begin, end;
  };
  Span needs(int64_t first, int64_t n, double in_rate, double out_rate) const;
  // Cached per thread until it needs another one.
  static const SincFilter &of(int lobes, double bandwidth);

 private:
  int lobes_;
  double bandwidth_;
  int64_t reach_, taps_, phases_;  // taps: a multiple of the lanes
  std::vector<float> weights_;     // (phases, 2, taps): the weights, and their differences to the next phase
};

// Resamples each channel of (n, channels) samples in `in` to (n_out, channels).
void resample_channels(float *out, int64_t n_out, const float *in, int64_t n, int64_t channels, double in_rate,
                       double out_rate, int lobes, bool antialias, Scratch &scratch, int part);
