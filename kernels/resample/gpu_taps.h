// SPDX-License-Identifier: Apache-2.0
// Weights made on the GPU, as by kernels/resample/taps.cpp on the CPU.
#pragma once
#include "core/gpu.h"
#include "resample/resample.h"

// An axis of a sample.
struct GpuAxis {
  ResampleAxis x;
  int64_t in_origin, length, out_origin;  // of the tensors' windows
  int taps;                               // per output
  float unit;                             // 1 / stretch

  DEVICE void of(const ResampleArgs &a, int d, int64_t in_length) {
    x = resample_axis(a, d);
    in_origin = a.in_origin[d], length = in_length, out_origin = a.out_origin[d];
    const int64_t most = most_taps(x);
    taps = (int)(most < length ? most : length);
    unit = (float)(1 / x.stretch);
  }
};

// The inputs of an output. Raw weights must be divided by their sum.
struct OutputTaps {
  int64_t first;  // not clamped
  int n;
  float offset;

  DEVICE void of(const GpuAxis &g, int64_t j) {
    const int64_t out = g.out_origin + j, most = most_taps(g.x);
    first = first_tap(g.x, out);
    const int64_t count = last_tap(g.x, out) - first + 1;
    n = (int)(count < most ? count : most);
    offset = (float)((double)first - coordinate(g.x, out));
  }
  template <class Nodes>
  DEVICE float raw(const GpuAxis &g, const Nodes &nodes, int k) const {
    if (g.x.filter == NN) return 1;
    const float at = (offset + (float)k) * g.unit, x = at < 0 ? -at : at;
    if (g.x.filter == LINEAR || g.x.filter == TRIANGULAR) return triangle_weight(x);
    return node_weight(nodes, last_node(g.x.filter), x);
  }
  // Index in the input's window.
  DEVICE int64_t index(const GpuAxis &g, int k) const { return clamp_index(first + k, g.x.in_size) - g.in_origin; }
};

// Nodes computed on demand. Not inlined, as sines and exponentials in double precision are long.
static __device__ __noinline__ float computed_node(int filter, int i) { return (float)filter_node(filter, i); }
struct ComputedNodes {
  int filter;
  DEVICE float operator[](int i) const { return computed_node(filter, i); }
};

// Writes the weights of output j to w[0], w[stride], ... Returns the index of their first input.
DEVICE int make_taps(const GpuAxis &g, const float *nodes, int64_t j, float *w, int stride) {
  OutputTaps t;
  t.of(g, j);
  float sum = 0;
  for (int k = 0; k < t.n; k++) sum += t.raw(g, nodes, k);
  int64_t begin = t.first - g.in_origin;
  begin = begin > 0 ? begin : 0;
  begin = begin < g.length - g.taps ? begin : g.length - g.taps;
  const float unit = 1 / sum;
  for (int k = 0; k < g.taps; k++) w[k * stride] = 0;
  for (int k = 0; k < t.n; k++) {
    const int64_t i = t.index(g, k) - begin;
    if (i >= 0 && i < g.taps) w[i * stride] += t.raw(g, nodes, k) * unit;
  }
  return (int)begin;
}

constexpr int kGpuWeightBits = 14;

// Converts weights in place to integers with the sum 2^14.
DEVICE void make_fixed_taps(float *w, int taps, int stride) {
  int32_t *q = (int32_t *)w;
  int rest = 1 << kGpuWeightBits, largest = 0;
  for (int k = 0; k < taps; k++) {
    const int v = __float2int_rn(w[k * stride] * (1 << kGpuWeightBits));
    q[k * stride] = v;
    rest -= v;
    if (v > q[largest * stride]) largest = k;
  }
  q[largest * stride] += rest;
}
