// SPDX-License-Identifier: Apache-2.0
// Resampling of a signal by a windowed sinc.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"

// Weights of a sinc under a Hann window at `phases` places between two input samples; those in between are linear.
class SincFilter {
 public:
  // `lobes` zeros of the sinc on either side. Below 1, `bandwidth` makes it as much wider, for what has fewer samples
  // than its input; then its resolution is finer, too. At 1 its numbers are DALI's.
  SincFilter(int lobes, double bandwidth);
  // out[i * out_step] is the signal at (first + i) * in_rate / out_rate, for i < n. `in` points to where element 0 of
  // the signal is or would be; only what `needs` tells is read.
  void run(float *out, int64_t out_step, int64_t first, int64_t n, const float *in, double in_rate,
           double out_rate) const;
  struct Span {
    int64_t begin, end;
  };
  Span needs(int64_t first, int64_t n, double in_rate, double out_rate) const;
  // Kept by each thread until it needs another.
  static const SincFilter &of(int lobes, double bandwidth);

 private:
  int lobes_;
  double bandwidth_;
  int64_t reach_, taps_, phases_;  // taps in multiples of lanes
  std::vector<float> weights_;     // (phases, 2, taps): the weights, and how much those of the next phase differ
};

// Resamples each channel of (n, channels) samples in `in` to (n_out, channels).
void resample_channels(float *out, int64_t n_out, const float *in, int64_t n, int64_t channels, double in_rate,
                       double out_rate, int lobes, bool antialias, Scratch &scratch, int part);
