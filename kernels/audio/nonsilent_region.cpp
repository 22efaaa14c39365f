// SPDX-License-Identifier: Apache-2.0
// The mean square of the window that ends at i is a running sum, in float for float signals. Its rounding errors decide
// where faint sounds end, so the order of additions is fixed: an interval begins with the sum of a window from its
// first element on. Intervals are independent; four are summed at a time.
#include "audio/nonsilent_region.h"

#include <algorithm>

#include "core/kernel.h"

constexpr int kTogether = 4;

// out[i] = in[i]^2
template <class Sum, class T>
CLONES static void square(Sum *__restrict out, const T *__restrict in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = (Sum)in[i] * (Sum)in[i];
}

template <class Sum>
CLONES static void differences(Sum *__restrict out, const Sum *squares, int64_t n, int64_t length) {
  for (int64_t i = 0; i < n; i++) out[i] = squares[i] - squares[i - length];
}

// Accumulates the steps to running sums.
template <class Sum>
static void add_up(Sum *steps, const Sum *squares, int64_t n, int64_t length, int64_t interval) {
  for (int64_t first = 0; first < n; first += kTogether * interval) {
    Sum sum[kTogether] = {};
    int64_t at[kTogether], end[kTogether], most = 0;
    for (int k = 0; k < kTogether; k++) {
      at[k] = std::min(n, first + k * interval), end[k] = std::min(n, at[k] + interval);
      most = std::max(most, end[k] - at[k]);
    }
    for (int64_t back = length - 1; back >= 0; back--)
      for (int k = 0; k < kTogether; k++) sum[k] += squares[std::min(at[k], n - 1) - back];
    for (int k = 0; k < kTogether; k++)
      if (at[k] < end[k]) steps[at[k]] = sum[k];
    const int64_t all = end[kTogether - 1] - at[kTogether - 1];
    int64_t i = 1;
    for (; i < all; i++)
      for (int k = 0; k < kTogether; k++) steps[at[k] + i] = sum[k] += steps[at[k] + i];
    for (int k = 0; k < kTogether; k++)
      for (int64_t j = at[k] + std::max<int64_t>(all, 1); j < end[k]; j++) steps[j] = sum[k] += steps[j];
  }
}

template <class Sum>
CLONES static void to_float(float *out, const Sum *sums, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)sums[i] * factor;
}

CLONES static float largest(const float *x, int64_t n) {
  float most[32] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 32; k++) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
  for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
  for (int k = 1; k < 32; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
  return most[0];
}

static void run(const Tensor *out, const Tensor *in, const NonsilentRegionArgs &a, Scratch &scratch) {
  const int64_t n = in->volume();
  int32_t &begin = *out[0].as<int32_t>(), &count = *out[1].as<int32_t>();
  begin = count = 0;
  if (!n) return;
  const int64_t length = std::min<int64_t>(a.window_length, n);
  const int64_t interval = a.reset_interval < 0 ? n : std::min<int64_t>(a.reset_interval, n);
  float *means = scratch.array<float>(n, 2);
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float>(in->dtype, [&](auto t) {
    using T = decltype(t);
    using Sum = std::conditional_t<std::is_same_v<T, float>, float, double>;
    Sum *squares = scratch.array<Sum>(length + n, 0), *steps = scratch.array<Sum>(n, 1);
    std::fill(squares, squares + length, (Sum)0);
    square(squares + length, in->as<T>(), n);
    differences(steps, (const Sum *)squares + length, n, length);
    add_up(steps, (const Sum *)squares + length, n, length, interval);
    to_float(means, steps, n, 1 / (float)length);
  });
  const float threshold = a.threshold * (a.reference == 0 ? largest(means, n) : a.reference);
  int64_t first = 0, last = n - 1;
  while (first < n && !(means[first] >= threshold)) first++;
  if (first == n) return;
  while (!(means[last] >= threshold)) last--;
  const int64_t start = std::max<int64_t>(first - length + 1, 0);
  begin = (int32_t)start, count = (int32_t)(last + 1 - start);
}

EXPORT_KERNEL(nonsilent_region, NonsilentRegionArgs, run)
