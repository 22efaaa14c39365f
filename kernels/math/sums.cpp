// SPDX-License-Identifier: Apache-2.0
#include "math/sums.h"

#include <algorithm>

#include "core/kernel.h"

template <class In>
CLONES static void add_lanes(double *__restrict lanes, const In *__restrict in, int64_t n, int64_t n_lanes) {
  int64_t i = 0;
  if (n_lanes == kLanes)
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++) lanes[j] += (double)in[i + j];
  for (; i < n; i += n_lanes) {
    int64_t m = n - i < n_lanes ? n - i : n_lanes;
    for (int64_t j = 0; j < m; j++) lanes[j] += (double)in[i + j];
  }
}

template <class In>
CLONES static void add_square_lanes(double *__restrict lanes, const double *__restrict center, const In *__restrict in,
                                    int64_t n, int64_t n_lanes) {
  int64_t i = 0;
  if (n_lanes == kLanes)
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++) {
        double d = (double)in[i + j] - center[j];
        lanes[j] += d * d;
      }
  for (; i < n; i += n_lanes) {
    int64_t m = n - i < n_lanes ? n - i : n_lanes;
    for (int64_t j = 0; j < m; j++) {
      double d = (double)in[i + j] - center[j];
      lanes[j] += d * d;
    }
  }
}

template <class In>
void sums(double *sum, const In *in, const Groups &g, double *scratch) {
  int64_t n = g.rows * g.period, lanes = n_lanes(g);
  std::fill_n(sum, g.n_params, 0.0);
  g.for_blocks([&](int64_t offset, int64_t param) {
    if (n < kLanes && g.period == 1) {
      double s = 0;
      for (int64_t i = 0; i < n; i++) s += (double)in[offset + i];
      sum[param] += s;
      return;
    }
    std::fill_n(scratch, lanes, 0.0);
    add_lanes(scratch, in + offset, n, lanes);
    for (int64_t j = 0; j < lanes; j++) sum[param + j % g.period] += scratch[j];
  });
}

template <class In>
void square_sums(double *sum, const double *center, const In *in, const Groups &g, double *scratch) {
  int64_t n = g.rows * g.period, lanes = n_lanes(g);
  double *centers = scratch + lanes;
  std::fill_n(sum, g.n_params, 0.0);
  g.for_blocks([&](int64_t offset, int64_t param) {
    if (n < kLanes && g.period == 1) {
      double s = 0, c = center[param];
      for (int64_t i = 0; i < n; i++) {
        double d = (double)in[offset + i] - c;
        s += d * d;
      }
      sum[param] += s;
      return;
    }
    std::fill_n(scratch, lanes, 0.0);
    for (int64_t j = 0; j < lanes; j++) centers[j] = center[param + j % g.period];
    add_square_lanes(scratch, centers, in + offset, n, lanes);
    for (int64_t j = 0; j < lanes; j++) sum[param + j % g.period] += scratch[j];
  });
}

#define SUMS_OF(In)                                                   \
  template void sums(double *, const In *, const Groups &, double *); \
  template void square_sums(double *, const double *, const In *, const Groups &, double *);
SUMS_OF(uint8_t)
SUMS_OF(int8_t)
SUMS_OF(uint16_t)
SUMS_OF(int16_t)
SUMS_OF(uint32_t)
SUMS_OF(int32_t)
SUMS_OF(float)
#undef SUMS_OF
