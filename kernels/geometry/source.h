// SPDX-License-Identifier: Apache-2.0
// Output rows that read computed positions of an input: shared by the kernels that warp.
#pragma once
#include <algorithm>

#include "core/kernel.h"
#include "geometry/sampling.h"

namespace {

// Columns have 32 bits: AVX2 converts no other integers.
inline void check_row(int64_t n, int64_t first) {
  if (first + n > INT32_MAX)
    fail("a row of the output has %lld columns, at most %d are accepted", (long long)(first + n), INT32_MAX);
}

}  // namespace

// An input, and the positions in it of a row of the output. Axes are x, y(, z).
template <int kDims, class In>
struct Source {
  const In *data;
  const In *fill;  // one element of all channels, or null to repeat the border
  int64_t extent[kDims], step[kDims];
  int channels;
  const int32_t *index[kDims];
  const float *weight[kDims];
  int border = kBorderReplicate;  // used if `fill` is null

  const In *at(const int64_t *i) const {
    int64_t offset = 0;
    for (int d = 0; d < kDims; d++) {
      int64_t k = i[d];
      if (k < 0 || k >= extent[d]) {
        if (fill) return fill;
        k = border_index((int32_t)k, (int32_t)extent[d], border);
      }
      offset += k * step[d];
    }
    return data + offset;
  }
};

namespace {

// Whether any of n elements has all indices in [lo, lo + size[axis]). Without branches, for SIMD.
template <int kDims>
CLONES bool any_within(const int32_t *const (&index)[kDims], const uint32_t (&size)[kDims], int32_t lo, int64_t first,
                       int64_t n) {
  int any = 0;
  for (int64_t x = first; x < first + n; x++) {
    int in = 1;
    for (int d = 0; d < kDims; d++) in &= (uint32_t)(index[d][x] - lo) < size[d];
    any |= in;
  }
  return any;
}

// Finds the elements [begin, end) of the row whose indices are in [lo, extent + hi). They are contiguous, as each index
// is monotonic along the row.
template <int kDims, class In>
void run_within(const Source<kDims, In> &s, int64_t n, int lo, int hi, int64_t *begin, int64_t *end) {
  constexpr int64_t kBlock = 32;
  uint32_t size[kDims];
  for (int d = 0; d < kDims; d++) size[d] = (uint32_t)std::max<int64_t>(s.extent[d] + hi - lo, 0);
  auto within = [&](int64_t x) {
    for (int d = 0; d < kDims; d++)
      if (s.index[d][x] < lo || s.index[d][x] >= s.extent[d] + hi) return false;
    return true;
  };
  int64_t b = 0, e = n;
  while (b + kBlock <= n && !any_within<kDims>(s.index, size, lo, b, kBlock)) b += kBlock;
  while (b < n && !within(b)) b++;
  while (e - kBlock >= b && !any_within<kDims>(s.index, size, lo, e - kBlock, kBlock)) e -= kBlock;
  while (e > b && !within(e - 1)) e--;
  *begin = b, *end = e;
}

template <class Out, int kDims, class In>
inline void nearest(Out *out, const Source<kDims, In> &s, int64_t x) {
  int64_t i[kDims];
  for (int d = 0; d < kDims; d++) i[d] = s.index[d][x];
  const In *p = s.at(i);
  for (int c = 0; c < s.channels; c++) out[c] = saturate<Out>(p[c]);
}

// Linear interpolation of any element: each neighbour is tested.
template <class Out, int kDims, class In>
inline void linear(Out *out, const Source<kDims, In> &s, int64_t x) {
  constexpr int kTaps = 1 << kDims;
  const In *p[kTaps];
  for (int t = 0; t < kTaps; t++) {
    int64_t i[kDims];
    for (int d = 0; d < kDims; d++) i[d] = s.index[d][x] + (t >> d & 1);
    p[t] = s.at(i);
  }
  for (int c = 0; c < s.channels; c++) {
    float v[kTaps];
    for (int t = 0; t < kTaps; t++) v[t] = (float)p[t][c];
    for (int t = 0; t < kTaps / 2; t++) v[t] = warp_mix_x(v[2 * t], v[2 * t + 1], s.weight[0][x]);
    for (int d = 1; d < kDims; d++)
      for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], s.weight[d][x]);
    out[c] = saturate<Out>(v[0]);
  }
}

}  // namespace
