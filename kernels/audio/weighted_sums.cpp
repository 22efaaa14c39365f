// SPDX-License-Identifier: Apache-2.0
#include "audio/weighted_sums.h"

#include "audio/lanes.h"
#include "core/kernel.h"

constexpr int kColumns = 8;  // vectors of lanes that are summed together

// `width` columns of signals that lie side by side; a multiple of the lanes, as a constant.
template <int kVectors>
ALWAYS_INLINE static void sum_columns(float *out, int64_t out_pitch, const float *in, int64_t in_pitch, int64_t n_out,
                                      const WeightedSumsArgs &a) {
  for (int64_t m = 0; m < n_out; m++) {
    Lanes sum[kVectors] = {};
    const float *w = a.weights + a.offset[m], *x = in + a.begin[m] * in_pitch;
    for (int64_t k = 0; k < a.count[m]; k++, x += in_pitch)
      for (int v = 0; v < kVectors; v++) sum[v] += load<Lanes>(x + v * kLanes) * w[k];
    for (int v = 0; v < kVectors; v++) store(out + m * out_pitch + v * kLanes, sum[v]);
  }
}

CLONES static void sum_side_by_side(float *out, const float *in, int64_t n_in, int64_t n_out, int64_t inner,
                                    Lanes *from, Lanes *to, const WeightedSumsArgs a) {
  int64_t i = 0;
  for (; i + kColumns * kLanes <= inner; i += kColumns * kLanes)
    sum_columns<kColumns>(out + i, inner, in + i, inner, n_out, a);
  for (; i + kLanes <= inner; i += kLanes) sum_columns<1>(out + i, inner, in + i, inner, n_out, a);
  if (i == inner) return;
  read_lanes(from, in + i, inner, n_in, inner - i);
  sum_columns<1>((float *)to, kLanes, (const float *)from, kLanes, n_out, a);
  write_lanes(out + i, inner, to, n_out, inner - i);
}

CLONES static void sum_one_by_one(float *out, const float *in, int64_t n_in, int64_t n_out, int64_t signals,
                                  Lanes *from, Lanes *to, const WeightedSumsArgs a) {
  for (int64_t s = 0; s < signals; s += kLanes) {
    gather_lanes(from, in + s * n_in, n_in, n_in, signals - s);
    sum_columns<1>((float *)to, kLanes, (const float *)from, kLanes, n_out, a);
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
