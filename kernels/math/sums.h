// SPDX-License-Identifier: Apache-2.0
// Sums of a tensor along its reduced axes, and of squared distances from a centre, in float64. Each is made of a fixed
// number of partial sums, so the order of additions, and the result, is the same for every instruction set.
#pragma once
#include <algorithm>

#include "core/kernel.h"
#include "math/groups.h"

constexpr int64_t kLanes = 48;  // a multiple of many numbers of channels and of all vector lengths

// How many partial sums a block is summed into: a multiple of its period.
inline int64_t n_lanes(const Groups &g) { return g.period < kLanes ? kLanes / g.period * g.period : g.period; }

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

// sum[p] = sum of the elements of parameter p. `scratch` holds n_lanes(g) numbers.
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

// sum[p] = sum of (x - center[p])^2 over the elements of parameter p. `scratch` holds 2 * n_lanes(g) numbers.
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
