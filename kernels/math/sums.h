// SPDX-License-Identifier: Apache-2.0
// Sums of a tensor along its reduced axes, and sums of squared distances from a centre, in float64. The number of
// partial sums is fixed, so the order of additions, and the result, is the same for every instruction set.
#pragma once
#include "math/groups.h"

constexpr int64_t kLanes = 48;  // a multiple of many numbers of channels and of all vector lengths

// Number of partial sums of a block: a multiple of its period.
inline int64_t n_lanes(const Groups &g) { return g.period < kLanes ? kLanes / g.period * g.period : g.period; }

// sum[p] = sum of the elements of parameter p. `scratch` holds n_lanes(g) numbers. In: uint8_t, int8_t, uint16_t,
// int16_t, uint32_t, int32_t, float.
template <class In>
void sums(double *sum, const In *in, const Groups &g, double *scratch);

// sum[p] = sum of (x - center[p])^2 over the elements of parameter p. `scratch` holds 2 * n_lanes(g) numbers.
template <class In>
void square_sums(double *sum, const double *center, const In *in, const Groups &g, double *scratch);
