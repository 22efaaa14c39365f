// SPDX-License-Identifier: Apache-2.0
// form: gather
// computes along: axis, axes
// joined: audio/spectrogram by audio/mel_spectrogram
#include "audio/weighted_sums.h"
#include "core/gpu_gather.h"

template <class To, class From>
struct WeightedSums : GatherAtOnce<WeightedSums<To, From>, To> {
  typedef WeightedSumsArgs Args;
  static_assert(To::C == From::C, "");
  Place<From> in;
  const int32_t *begins, *counts, *offsets;
  const float *weights;
  int along;      // the coordinate of the summed axis
  int64_t pitch;  // between its elements

  DEVICE void begin(const Args &a, const Tensor &, const Tensor &from) {
    in.begin(from);
    begins = a.begin, counts = a.count, offsets = a.offset, weights = a.weights;
    along = a.axis - (From::kUnit && a.axis > From::kAxis);
    pitch = 1;
#pragma unroll
    for (int d = 0; d < From::N; d++)
      if (d == along) pitch = in.step[d];
  }
  DEVICE void read(const int32_t (&at)[To::N], typename To::T (&pixel)[To::C]) const {
    int32_t m = 0, first[From::N];
#pragma unroll
    for (int d = 0; d < From::N; d++) {
      if (d == along) m = at[d];
      first[d] = d == along ? 0 : at[d];
    }
    const float *x = in.at(first) + load(begins + m) * pitch, *w = weights + load(offsets + m);
    const int n = load(counts + m);
    float sum[To::C] = {};
#pragma unroll 4
    for (int k = 0; k < n; k++, x += pitch) {
      const float weight = load(w + k);
#pragma unroll
      for (int c = 0; c < To::C; c++) sum[c] = __fmaf_rn(load(x + c * in.channel), weight, sum[c]);
    }
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel[c] = sum[c];
  }
};
