// SPDX-License-Identifier: Apache-2.0
#include "resample/taps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/kernel.h"

namespace {

// The filter's values at its nodes from 0 on, then zeros, so that interpolation needs no test.
struct Nodes {
  float value[kMostNodes];
  explicit Nodes(int filter) {
    for (int i = 0; i < kMostNodes; i++) value[i] = (float)filter_node(filter, i);
  }
};
const Nodes &nodes(int filter) {
  static const Nodes cubic(CUBIC), lanczos(LANCZOS3), gaussian(GAUSSIAN);
  return filter == CUBIC ? cubic : filter == LANCZOS3 ? lanczos : gaussian;
}

// Computes weights of the inputs first .. first + n - 1 around coordinate c. Returns their sum.
inline float evaluate(const ResampleAxis &x, double c, int64_t first, int n, float *w) {
  float sum = 0, unit = (float)(1 / x.stretch), offset = (float)((double)first - c);
  if (x.filter == NN) {
    w[0] = 1;
    return 1;
  }
  if (x.filter == LINEAR || x.filter == TRIANGULAR) {
    for (int k = 0; k < n; k++) {
      w[k] = triangle_weight(std::fabs((offset + (float)k) * unit));
      sum += w[k];
    }
    return sum;
  }
  const float *v = nodes(x.filter).value;
  const float last = last_node(x.filter);
  for (int k = 0; k < n; k++) {
    w[k] = node_weight(v, last, std::fabs((offset + (float)k) * unit));
    sum += w[k];
  }
  return sum;
}

bool same(const TapsKey &a, const TapsKey &b) {
  return a.axis.center == b.axis.center && a.axis.scale == b.axis.scale && a.axis.stretch == b.axis.stretch &&
         a.axis.in_size == b.axis.in_size && a.axis.filter == b.axis.filter && a.axis.adds_up == b.axis.adds_up &&
         a.axis.base == b.axis.base && a.axis.rule == b.axis.rule && a.axis.antialias == b.axis.antialias &&
         a.axis.mirrored == b.axis.mirrored && a.axis.extent == b.axis.extent && a.axis.out_size == b.axis.out_size &&
         a.in_origin == b.in_origin && a.in_length == b.in_length && a.out_origin == b.out_origin &&
         a.out_length == b.out_length;
}

CLONES void build(Taps &t) {
  const TapsKey &key = t.key;
  const ResampleAxis &x = key.axis;
  const int most = (int)most_taps(x), length = (int)key.in_length;
  t.n = (int)key.out_length;
  t.k = std::min(most, length);
  t.stride = (t.k + 1) & ~1;
  t.lo = length, t.hi = 0;
  t.fixed_valid = false;
  t.prepared_for = 0;
  t.first.resize(t.n);
  t.weights.assign((size_t)t.n * t.stride, 0);
  std::vector<float> raw(most + 1);
  float added = x.adds_up ? added_coordinate(x, key.out_origin) : 0;
  for (int j = 0; j < t.n; j++, added += (float)x.scale) {
    int64_t out = key.out_origin + j, first = x.adds_up ? x.base + (int64_t)floor(added) : first_tap(x, out);
    int n = x.adds_up ? 1 : (int)std::min<int64_t>(last_tap(x, out) - first + 1, most);
    float sum = evaluate(x, coordinate(x, out), first, n, raw.data());
    // Samples outside the image repeat its border, so their weights are added there.
    int64_t begin = std::min(std::max(first - key.in_origin, (int64_t)0), (int64_t)length - t.k);
    float *w = t.weights.data() + (size_t)j * t.stride, unit = 1 / sum;
    for (int k = 0; k < n; k++) {
      if (raw[k] == 0) continue;  // the window need not have its sample
      int64_t i = clamp_index(first + k, x.in_size) - key.in_origin - begin;
      if (i < 0 || i >= t.k)
        fail("[internal error] resampling reads sample %lld, outside of the input's window", (long long)(i + begin));
      w[i] += raw[k] * unit;
    }
    t.first[j] = (int32_t)begin;
    t.lo = std::min(t.lo, t.first[j]);
    t.hi = std::max(t.hi, t.first[j] + t.k);
  }
}

}  // namespace

Taps &taps_for(int slot, const ResampleAxis &axis, int64_t in_origin, int64_t in_length, int64_t out_origin,
               int64_t n) {
  thread_local Taps kept[3];
  Taps &t = kept[slot];
  TapsKey key{axis, in_origin, in_length, out_origin, n};
  if (t.valid && same(t.key, key)) return t;
  t.valid = false;
  t.key = key;
  axis.rule ? build_exact(t) : build(t);
  t.valid = true;
  return t;
}

void make_fixed(Taps &t) {
  if (t.fixed_valid) return;
  t.fixed.assign((size_t)t.n * t.stride, 0);
  for (int j = 0; j < t.n; j++) {
    const float *w = t.weights.data() + (size_t)j * t.stride;
    int16_t *q = t.fixed.data() + (size_t)j * t.stride;
    int rest = 1 << kWeightBits, largest = 0;
    for (int k = 0; k < t.k; k++) {
      q[k] = (int16_t)lrintf(w[k] * (1 << kWeightBits));
      rest -= q[k];
      if (q[k] > q[largest]) largest = k;
    }
    q[largest] += rest;
  }
  t.fixed_valid = true;
}
