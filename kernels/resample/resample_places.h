// SPDX-License-Identifier: Apache-2.0
// Resamples each output independently, with any layout and number of axes. Slow; used where tiles are not supported.
#pragma once
#include "core/gpu_chain.h"
#include "resample/gpu_taps.h"

template <class To, class From>
struct Resampled {
  typedef ResampleArgs Args;
  GpuAxis axis[3];  // of the last n_axes; the others have one tap
  int first_axis, n_axes;
  Place<From> in;

  DEVICE void begin(const Args &a, const Tensor &from) {
    first_axis = a.first_axis, n_axes = a.n_axes;
#pragma unroll
    for (int d = 0; d < 3; d++)
      if (d < n_axes) axis[d].of(a, d, from.shape[first_axis + d]);
    in.begin(from);
  }
  // Index of the coordinate along axis d of the resampled ones.
  DEVICE int coordinate_of(int d) const {
    const int a = first_axis + d;
    return To::kUnit && a > To::kAxis ? a - 1 : a;
  }
  // Sums along axis D and those before it, the first axis innermost, as on the CPU.
  template <int D>
  DEVICE float sum(const OutputTaps *taps, const float *unit, int32_t (&at)[From::N], int c) const {
    const ComputedNodes nodes{axis[D].x.filter};
    float total = 0;
    for (int k = 0; k < taps[D].n; k++) {
      const float w = taps[D].raw(axis[D], nodes, k) * unit[D];
      if (w == 0) continue;
      set(at, coordinate_of(D), (int32_t)taps[D].index(axis[D], k));
      if constexpr (D > 0)
        total += w * sum<D - 1>(taps, unit, at, c);
      else
        total += w * (float)load(in.at(at) + c * in.channel);
    }
    return total;
  }
  DEVICE static void set(int32_t (&at)[From::N], int n, int32_t value) {
#pragma unroll
    for (int i = 0; i < From::N; i++)
      if (i == n) at[i] = value;
  }
  DEVICE void read(const int32_t (&place)[To::N], typename To::T (&pixel)[To::C]) const {
    static_assert(To::N == From::N && To::C == From::C, "resampling keeps the layout");
    OutputTaps taps[3];
    float unit[3];
    int32_t at[From::N];
#pragma unroll
    for (int i = 0; i < From::N; i++) at[i] = place[i];
#pragma unroll
    for (int d = 0; d < 3; d++) {
      if (d >= n_axes) break;
      int64_t j = 0;
#pragma unroll
      for (int i = 0; i < From::N; i++)
        if (i == coordinate_of(d)) j = place[i];
      taps[d].of(axis[d], j);
      float total = 0;
      const ComputedNodes nodes{axis[d].x.filter};
      for (int k = 0; k < taps[d].n; k++) total += taps[d].raw(axis[d], nodes, k);
      unit[d] = 1 / total;
    }
    for (int c = 0; c < To::C; c++)
      pixel[c] = saturate<typename To::T>(n_axes == 3   ? sum<2>(taps, unit, at, c)
                                          : n_axes == 2 ? sum<1>(taps, unit, at, c)
                                                        : sum<0>(taps, unit, at, c));
  }
};

// Passes a pixel of the source through the chain and writes it to p.
template <class Last, class Chain, class T, int C>
DEVICE void write_pixel(const Chain &chain, const Found<Chain::kSteps> &found, const T (&source)[C],
                        typename Last::T *p, int64_t channel) {
  typename Last::T x[Last::C];
  chain.map(x, source, found);
#pragma unroll
  for (int c = 0; c < Last::C; c++) p[Last::kInterleaved ? c : c * channel] = x[c];
}

// Calls f with the positions in a tensor that this thread handles.
template <class Last, class F>
DEVICE void each_place(const Tensor &out, const F &f) {
  int64_t n = 1;
#pragma unroll
  for (int d = 0; d < Last::N; d++) n *= Last::extent(out, d);
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    int32_t at[Last::N];
    int64_t rest = i;
#pragma unroll
    for (int d = Last::N - 1; d >= 0; d--) {
      const int64_t extent = Last::extent(out, d);
      at[d] = (int32_t)(rest % extent);
      rest /= extent;
    }
    f(at);
  }
}

template <class To, class Last, class Source, class Chain>
DEVICE void write_place(const Source &source, const Chain &chain, const Place<Last> &to, int32_t (&at)[Last::N]) {
  typename Last::T *p = to.at(at);
  Found<Chain::kSteps> found;
  chain.locate(at, found);
  typename To::T pixel[To::C];
  if (!Chain::kFills || !found.filled) source.read(at, pixel);
  write_pixel<Last>(chain, found, pixel, p, to.channel);
}

template <class To, class From, class Chain, int IN, bool SIZES>
DEVICE void resample_places(const Launch &l) {
  typedef typename Chain::Kind Last;
  FOR_SAMPLES(sample, l) {
    const ResampleArgs &a = ((const ResampleArgs *)l.args[0])[sample];
    const Tensor &out = l.tensors[0][sample], &in = l.tensors[IN][sample];
    if (SIZES && blockIdx.x == 0 && (int)threadIdx.x < a.n_axes)
      l.tensors[1][sample].as<int32_t>()[threadIdx.x] = (int32_t)a.in_size[threadIdx.x];
    if (out.volume() == 0 || in.volume() == 0) continue;
    Resampled<To, From> source;
    Chain chain;
    Place<Last> to;
    source.begin(a, in);
    chain.begin(l, sample);
    to.begin(out);
    each_place<Last>(out, [&](int32_t(&at)[Last::N]) { write_place<To, Last>(source, chain, to, at); });
  }
}
