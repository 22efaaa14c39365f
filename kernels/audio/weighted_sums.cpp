// SPDX-License-Identifier: Apache-2.0
#include "audio/weighted_sums.h"

#include "audio/lanes.h"
#include "core/kernel.h"

constexpr int kColumns = 8;  // vectors of lanes summed together

// The outputs [first, end) of kVectors * kLanes columns of interleaved signals.
template <int kVectors>
ALWAYS_INLINE static void sum_columns(float *out, int64_t out_pitch, const float *in, int64_t in_pitch, int64_t first,
                                      int64_t end, const WeightedSumsArgs &a) {
  for (int64_t m = first; m < end; m++) {
    Lanes sum[kVectors] = {};
    const float *w = a.weights + a.offset[m], *x = in + a.begin[m] * in_pitch;
    for (int64_t k = 0; k < a.count[m]; k++, x += in_pitch)
      for (int v = 0; v < kVectors; v++) sum[v] += load<Lanes>(x + v * kLanes) * w[k];
    for (int v = 0; v < kVectors; v++) store(out + m * out_pitch + v * kLanes, sum[v]);
  }
}

// Few columns at a time stay in cache for all outputs; for filter banks, whose outputs each need a few nearby elements,
// whole rows are better, as the processor prefetches them.
CLONES static void sum_side_by_side(float *out, const float *in, int64_t n_in, int64_t n_out, int64_t inner,
                                    Lanes *from, Lanes *to, const WeightedSumsArgs a) {
  constexpr int64_t kWidth = kColumns * kLanes;
  int64_t used = 0, i = 0;
  for (int64_t m = 0; m < n_out; m++) used += a.count[m];
  if (used <= 3 * n_in && inner >= kWidth) {
    for (int64_t m = 0; m < n_out; m++)
      for (i = 0; i + kWidth <= inner; i += kWidth) sum_columns<kColumns>(out + i, inner, in + i, inner, m, m + 1, a);
  } else {
    for (; i + kWidth <= inner; i += kWidth) sum_columns<kColumns>(out + i, inner, in + i, inner, 0, n_out, a);
  }
  for (; i + kLanes <= inner; i += kLanes) sum_columns<1>(out + i, inner, in + i, inner, 0, n_out, a);
  if (i == inner) return;
  read_lanes(from, in + i, inner, n_in, inner - i);
  sum_columns<1>((float *)to, kLanes, (const float *)from, kLanes, 0, n_out, a);
  write_lanes(out + i, inner, to, n_out, inner - i);
}

CLONES static void sum_one_by_one(float *out, const float *in, int64_t n_in, int64_t n_out, int64_t signals,
                                  Lanes *from, Lanes *to, const WeightedSumsArgs a) {
  for (int64_t s = 0; s < signals; s += kLanes) {
    gather_lanes(from, in + s * n_in, n_in, n_in, signals - s);
    sum_columns<1>((float *)to, kLanes, (const float *)from, kLanes, 0, n_out, a);
    scatter_lanes(out + s * n_out, n_out, to, n_out, signals - s);
  }
}

static void run(const Tensor *out, const Tensor *in, const WeightedSumsArgs &a, Scratch &scratch) {
  if (!out->volume()) return;
  const int64_t n_in = in->shape[a.axis], n_out = out->shape[a.axis];
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < a.axis; d++) outer *= in->shape[d];
  for (int d = a.axis + 1; d < in->ndim; d++) inner *= in->shape[d];
  Lanes *from = scratch.array<Lanes>(n_in, 0), *to = scratch.array<Lanes>(n_out, 1);
  if (inner == 1) return sum_one_by_one(out->as<float>(), in->as<float>(), n_in, n_out, outer, from, to, a);
  for (int64_t o = 0; o < outer; o++)
    sum_side_by_side(out->as<float>() + o * n_out * inner, in->as<float>() + o * n_in * inner, n_in, n_out, inner, from,
                     to, a);
}

EXPORT_KERNEL(weighted_sums, WeightedSumsArgs, run)
