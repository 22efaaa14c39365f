// SPDX-License-Identifier: Apache-2.0
// Launches that read place by place, directly or by a gather; for what does not suit gpu_rows.h.
#pragma once
#include "core/gpu_chain.h"

// Heads: they give the source's values at a place.
template <class K, int IN>
struct Load {
  Place<K> place;
  DEVICE void begin(const Launch &l, int sample) { place.begin(l.tensors[IN][sample]); }
  DEVICE void read(const int32_t (&at)[K::N], typename K::T (&pixel)[K::C]) const {
    const typename K::T *p = place.at(at);
#pragma unroll
    for (int c = 0; c < K::C; c++) pixel[c] = load(p + (K::kInterleaved ? c : c * place.channel));
  }
};

template <class X>
constexpr int inputs_of(decltype(X::kInputs) *) {
  return X::kInputs;
}
template <class X>
constexpr int inputs_of(...) {
  return 1;
}

template <template <class, class> class X, class To, class From, int OUT, int IN>
struct Gather {
  typedef To Kind;
  typedef X<To, From> Head;
  Head head;
  DEVICE void begin(const Launch &l, int sample) {
    constexpr int kInputs = inputs_of<X<To, From>>(nullptr);
    static_assert(kInputs == 1 || kInputs == 3, "");
    const auto &args = ((const typename X<To, From>::Args *)l.args[0])[sample];
    const Tensor &out = l.tensors[OUT][sample], &in = l.tensors[IN][sample];
    if constexpr (kInputs == 3)
      head.begin(args, out, in, l.tensors[IN + 1][sample], l.tensors[IN + 2][sample]);
    else
      head.begin(args, out, in);
  }
  DEVICE void read(const int32_t (&at)[To::N], typename To::T (&pixel)[To::C]) const { head.read(at, pixel); }
};

// Blocks of BX x BY threads take tiles of the last output: BX places along the last coordinate in each of BY * U rows
// (where there is one coordinate only, BX * U places). A thread reads its U places before it writes the first.
template <class Head, class Chain, int BX, int BY, int U>
DEVICE void run_local(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename Chain::From From;
  constexpr int N = To::N, kAlong = N == 1 ? BX * U : BX, kDown = N == 1 ? 1 : BY * U;
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    int32_t extent[N], rows = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      extent[d] = (int32_t)To::extent(out, d);
      if (d < N - 1) rows *= extent[d];
    }
    // One coordinate counts the places of the whole sample, whatever its shape.
    if (N == 1) extent[0] = (int32_t)(volume_of(out) / To::C);
    const int32_t columns = extent[N - 1], tiles_along = (columns + kAlong - 1) / kAlong;
    const int32_t n_tiles = tiles_along * ((rows + kDown - 1) / kDown);
    if ((int32_t)blockIdx.x >= n_tiles) continue;
    Head head;
    Chain chain;
    Place<To> to;
    head.begin(l, sample);
    chain.begin(l, sample);
    to.begin(out);
    for (int32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const int32_t down = tile / tiles_along, along = tile - down * tiles_along;
      typename From::T in[U][From::C];
      Found<Chain::kSteps> found[U];
      typename To::T *pointer[U];
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int32_t column = along * kAlong + (int)threadIdx.x + (N == 1 ? k * BX : 0);
        int32_t row = N == 1 ? 0 : down * kDown + (int)threadIdx.y + k * BY;
        pointer[k] = nullptr;
        if (column >= columns || row >= rows) continue;
        int32_t at[N];
        at[N - 1] = column;
#pragma unroll
        for (int d = N - 2; d > 0; d--) {
          const int32_t above = (uint32_t)row / (uint32_t)extent[d];
          at[d] = row - above * extent[d];
          row = above;
        }
        if (N > 1) at[0] = row;
        pointer[k] = to.at(at);
        chain.locate(at, found[k]);
        if (!Chain::kFills || !found[k].filled) head.read(at, in[k]);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        if (!pointer[k]) continue;
        typename To::T x[To::C];
        chain.map(x, in[k], found[k]);
#pragma unroll
        for (int c = 0; c < To::C; c++) pointer[k][To::kInterleaved ? c : c * to.channel] = x[c];
      }
    }
  }
}
