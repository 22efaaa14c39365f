// SPDX-License-Identifier: Apache-2.0
#include "math/normalize.h"

#include <algorithm>

#include "core/stream.h"
#include "math/sums.h"

template <class In>
CLONES static void apply(float *__restrict out, const In *__restrict in, int64_t n, const float *__restrict mean,
                         const float *__restrict rest, const float *__restrict factor, float shift, int64_t n_lanes) {
  int64_t i = 0;
  if (n_lanes == kLanes)
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++) out[i + j] = deviation(in[i + j], mean[j], rest[j]) * factor[j] + shift;
  for (; i < n; i += n_lanes) {
    int64_t m = n - i < n_lanes ? n - i : n_lanes;
    for (int64_t j = 0; j < m; j++) out[i + j] = deviation(in[i + j], mean[j], rest[j]) * factor[j] + shift;
  }
}

// The same with one parameter.
template <class In>
CLONES static void apply(float *__restrict out, const In *__restrict in, int64_t n, float mean, float rest,
                         float factor, float shift) {
  for (int64_t i = 0; i < n; i++) out[i] = deviation(in[i], mean, rest) * factor + shift;
}

template <class Out>
CLONES static void convert(void *__restrict out, const float *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) static_cast<Out *>(out)[i] = saturate<Out>(in[i]);
}

constexpr int64_t kBlock = 4096;  // floats converted at a time, while they are in the cache

// Size of the table of `apply`, in floats.
static int64_t table_size(const Groups &g) { return 3 * n_lanes(g) + std::max(n_lanes(g), kBlock); }

namespace {

// Output address and the conversion from float; `convert` is null for float outputs.
struct Target {
  char *out;
  int64_t size;  // bytes of an element
  void (*convert)(void *out, const float *in, int64_t n);
};

}  // namespace

// Other output types are converted from floats, as a loop for each pair of types would be 49 loops.
template <class In>
static void apply(const Target &to, const In *in, const Groups &g, const double *mean, const double *factor,
                  float shift, float *table, const Scratch &scratch) {
  int64_t n = g.rows * g.period, lanes = n < kLanes ? g.period : n_lanes(g);
  const bool streams = scratch.is_output_large && n >= 4096 && lanes <= kLanes;
  float *means = table, *rests = means + lanes, *factors = rests + lanes, *block = factors + lanes;
  const int64_t step = std::max(lanes, kBlock / lanes * lanes);
  g.for_blocks([&](int64_t offset, int64_t param) {
    for (int64_t j = 0; j < lanes; j++) {
      int64_t p = param + (lanes == g.period ? j : j % g.period);
      means[j] = (float)mean[p];
      rests[j] = (float)(mean[p] - means[j]);
      factors[j] = (float)factor[p];
    }
    auto make = [&](float *x, int64_t first, int64_t m) {
      const In *from = in + offset + first;
      if (lanes == 1)  // few elements: a call would cost more than they do
        for (int64_t i = 0; i < m; i++) x[i] = deviation(from[i], means[0], rests[0]) * factors[0] + shift;
      else if (g.period == 1)
        apply(x, from, m, means[0], rests[0], factors[0], shift);
      else
        apply(x, from, m, means, rests, factors, shift, lanes);
    };
    float *const out = (float *)(to.out + offset * to.size);
    if (to.convert) {
      for (int64_t i = 0; i < n; i += step) {
        const int64_t m = std::min(step, n - i);
        make(block, i, m);
        to.convert(to.out + (offset + i) * to.size, block, m);
      }
    } else if (streams) {
      stream_blocks(out, n, lanes, make);
    } else {
      make(out, 0, n);
    }
  });
}

// Reads the parameters from an input (float32 or float64), which has one value, or one per parameter.
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
  Target to{out->as<char>(), item_size(out->dtype), nullptr};
  if (out->dtype != FLOAT)
    for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t>(
        out->dtype, [&](auto o) { to.convert = convert<decltype(o)>; });
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
    apply(to, x, g, mean, factor, a.shift, scratch.array<float>(table_size(g), 2), scratch);
  });
}

EXPORT_KERNEL(normalize, NormalizeArgs, run)
