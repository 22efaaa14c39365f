// SPDX-License-Identifier: Apache-2.0
#include "math/normalize.h"

#include <type_traits>

#include "core/stream.h"
#include "math/sums.h"

template <class Out, class In>
CLONES static void apply(Out *__restrict out, const In *__restrict in, int64_t n, const float *__restrict mean,
                         const float *__restrict rest, const float *__restrict factor, float shift, int64_t n_lanes) {
  int64_t i = 0;
  if (n_lanes == kLanes)
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++)
        out[i + j] = saturate<Out>(deviation(in[i + j], mean[j], rest[j]) * factor[j] + shift);
  for (; i < n; i += n_lanes) {
    int64_t m = n - i < n_lanes ? n - i : n_lanes;
    for (int64_t j = 0; j < m; j++)
      out[i + j] = saturate<Out>(deviation(in[i + j], mean[j], rest[j]) * factor[j] + shift);
  }
}

// One mean for all.
template <class Out, class In>
CLONES static void apply(Out *__restrict out, const In *__restrict in, int64_t n, float mean, float rest, float factor,
                         float shift) {
  for (int64_t i = 0; i < n; i++) out[i] = saturate<Out>(deviation(in[i], mean, rest) * factor + shift);
}

template <class Out, class In>
static void apply(Out *out, const In *in, const Groups &g, const double *mean, const double *factor, float shift,
                  float *table, const Scratch &scratch) {
  int64_t n = g.rows * g.period, lanes = n < kLanes ? g.period : n_lanes(g);
  // Of floats only, the usual and largest outputs: for the others the code would be as much again.
  constexpr bool kMayStream = std::is_same_v<Out, float>;
  const bool streams = kMayStream && scratch.is_output_large && n >= 4096 && lanes <= kLanes;
  float *means = table, *rests = table + lanes, *factors = rests + lanes;
  g.for_blocks([&](int64_t offset, int64_t param) {
    for (int64_t j = 0; j < lanes; j++) {
      int64_t p = param + (lanes == g.period ? j : j % g.period);
      means[j] = (float)mean[p];
      rests[j] = (float)(mean[p] - means[j]);
      factors[j] = (float)factor[p];
    }
    if (streams) {
      if constexpr (kMayStream)
        stream_blocks(out + offset, n, lanes, [&](Out *to, int64_t first, int64_t m) {
          g.period == 1 ? apply(to, in + offset + first, m, means[0], rests[0], factors[0], shift)
                        : apply(to, in + offset + first, m, means, rests, factors, shift, lanes);
        });
    } else if (lanes == 1) {  // few elements: a call would cost more than they do
      for (int64_t i = 0; i < n; i++)
        out[offset + i] = saturate<Out>(deviation(in[offset + i], means[0], rests[0]) * factors[0] + shift);
    } else if (g.period == 1) {
      apply(out + offset, in + offset, n, means[0], rests[0], factors[0], shift);
    } else {
      apply(out + offset, in + offset, n, means, rests, factors, shift, lanes);
    }
  });
}

// The parameters of an input, float32 or float64, one for all or one each.
static void read(double *to, const Tensor &from, int64_t n) {
  bool one = from.volume() == 1;
  for_types<float, double>(from.dtype, [&](auto t) {
    for (int64_t p = 0; p < n; p++) to[p] = from.as<decltype(t)>()[one ? 0 : p];
  });
}

static void run(const Tensor *out, const Tensor *in, const NormalizeArgs &a, Scratch &scratch) {
  Groups g(*in, a.reduced);
  if (in->volume() == 0) return;
  double *lanes = scratch.array<double>(2 * n_lanes(g), 0), *mean = scratch.array<double>(2 * g.n_params, 1);
  double *factor = mean + g.n_params;
  const Tensor *more = in + 1;
  if (a.mean_origin == ARGUMENT) std::fill_n(mean, g.n_params, (double)a.mean);
  if (a.mean_origin == INPUT) read(mean, *more++, g.n_params);
  if (a.stddev_origin == ARGUMENT) std::fill_n(factor, g.n_params, (double)a.stddev);
  if (a.stddev_origin == INPUT) read(factor, *more, g.n_params);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float>(in->dtype, [&](auto i) {
    const auto *x = in->as<decltype(i)>();
    double count = (double)g.count(), degrees = count - a.ddof;
    if (a.mean_origin == COMPUTED) {
      sums(mean, x, g, lanes);
      for (int64_t p = 0; p < g.n_params; p++) mean[p] /= count;
    }
    if (a.stddev_origin == COMPUTED) square_sums(factor, mean, x, g, lanes);
    for (int64_t p = 0; p < g.n_params; p++) {
      double variance = a.stddev_origin != COMPUTED ? factor[p] * factor[p] : degrees > 0 ? factor[p] / degrees : 0;
      factor[p] = normalizing_factor(variance + a.epsilon, a.scale, a.stddev_origin == COMPUTED || a.is_estimate);
    }
    float *table = scratch.array<float>(3 * n_lanes(g), 2);
    for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float>(
        out->dtype, [&](auto o) { apply(out->as<decltype(o)>(), x, g, mean, factor, a.shift, table, scratch); });
  });
}

EXPORT_KERNEL(normalize, NormalizeArgs, run)
