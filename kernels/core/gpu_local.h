// SPDX-License-Identifier: Apache-2.0
// The loops of launches that read by themselves (or by a gather) and of nothing else but LOCALs.
#pragma once
#include "core/gpu_chain.h"

// Heads: what gives the source's values at a place.
template <class K, int IN>
struct Load {
  typedef K Kind;
  Place<K> place;
  DEVICE void begin(const Launch &l, int sample) { place.begin(l.tensors[IN][sample]); }
  DEVICE void read(const int32_t (&at)[K::N], typename K::T (&pixel)[K::C]) const {
    const typename K::T *p = place.at(at);
#pragma unroll
    for (int c = 0; c < K::C; c++) pixel[c] = load(p + (K::kInterleaved ? c : c * place.channel));
  }
};

template <template <class, class> class X, class To, class From, int OUT, int IN>
struct Gather {
  typedef To Kind;
  X<To, From> head;
  DEVICE void begin(const Launch &l, int sample) {
    head.begin(((const typename X<To, From>::Args *)l.args[0])[sample], l.tensors[OUT][sample], l.tensors[IN][sample]);
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
    const Tensor &out = l.tensors[0][sample];
    int32_t extent[N], rows = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      extent[d] = (int32_t)To::extent(out, d);
      if (d < N - 1) rows *= extent[d];
    }
    // One coordinate counts the places of the whole sample, whatever its shape.
    if (N == 1) extent[0] = (int32_t)(out.volume() / To::C);
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

// V elements from p on, of which p[begin..end) exist.
template <class T, int V>
DEVICE void load_run(T (&x)[V], const T *p, bool aligned, int begin, int end) {
  constexpr int kBytes = V * sizeof(T);
  if (begin <= 0 && end >= V) {
    if (aligned && (kBytes == 4 || kBytes == 8 || kBytes % 16 == 0)) {
      if constexpr (kBytes % 16 == 0) {
#pragma unroll
        for (int i = 0; i < kBytes / 16; i++) ((uint4 *)x)[i] = __ldg((const uint4 *)p + i);
      } else if constexpr (kBytes == 8) {
        *(uint2 *)x = __ldg((const uint2 *)p);
      } else {
        *(uint32_t *)x = __ldg((const unsigned int *)p);
      }
      return;
    }
    if constexpr (sizeof(T) < 4 && kBytes % 4 == 0) {  // words that begin at multiples of four, shifted into place
      const uint32_t *word = (const uint32_t *)((unsigned long long)p & ~3ull);
      const int shift = (int)((unsigned long long)p & 3) * 8;
      uint32_t low = __ldg(word);
#pragma unroll
      for (int i = 0; i < kBytes / 4; i++) {
        const bool more = i + 1 < kBytes / 4 || shift;
        const uint32_t high = more ? __ldg(word + i + 1) : 0;
        ((uint32_t *)x)[i] = __funnelshift_r(low, high, shift);
        low = high;
      }
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i >= begin && i < end) x[i] = load(p + i);
}

template <class T, int V>
DEVICE void store_run(T *p, const T (&x)[V], int begin, int end) {
  constexpr int kBytes = V * sizeof(T);
  if (begin <= 0 && end >= V) {  // p is aligned to the run
    if constexpr (kBytes % 16 == 0) {
#pragma unroll
      for (int i = 0; i < kBytes / 16; i++) ((uint4 *)p)[i] = ((const uint4 *)x)[i];
      return;
    } else if constexpr (kBytes == 8) {
      *(uint2 *)p = *(const uint2 *)x;
      return;
    } else if constexpr (kBytes == 4) {
      *(uint32_t *)p = *(const uint32_t *)x;
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i >= begin && i < end) p[i] = x[i];
}

// Chains of values: a run of V elements takes the place of a pixel. Runs are aligned in the output, so that the first
// and the last may be cut.
template <class Chain, int IN, int THREADS, int U>
DEVICE void run_values(const Launch &l) {
  typedef typename Chain::Kind::T Out;
  typedef typename Chain::From::T In;
  constexpr int V = Chain::Kind::C;
  FOR_SAMPLES(sample, l) {
    const int64_t n = l.tensors[0][sample].volume();
    Out *out = l.tensors[0][sample].template as<Out>();
    const In *in = l.tensors[IN][sample].template as<In>();
    const int lead = (int)((unsigned long long)out / sizeof(Out) & (V - 1));  // elements before the first run begins
    const bool aligned = (((unsigned long long)in - lead * sizeof(In)) & (V * sizeof(In) - 1)) == 0;
    const int64_t n_runs = (n + lead + V - 1) / V;
    int64_t first = (int64_t)blockIdx.x * (THREADS * U) + threadIdx.x;
    if (first >= n_runs || n == 0) continue;
    Chain chain;
    chain.begin(l, sample);
    const Found<Chain::kSteps> found;
    for (; first < n_runs; first += (int64_t)gridDim.x * (THREADS * U)) {
      In x[U][V] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t e = (first + k * THREADS) * V - lead;
        if (first + k * THREADS < n_runs) {
          const int64_t rest = n - e;
          load_run(x[k], in + e, aligned, e < 0 ? (int)-e : 0, rest < V ? (int)rest : V);
        }
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t e = (first + k * THREADS) * V - lead;
        if (first + k * THREADS < n_runs) {
          const int64_t rest = n - e;
          Out y[V] __attribute__((aligned(16)));
          chain.map(y, x[k], found);
          store_run(out + e, y, e < 0 ? (int)-e : 0, rest < V ? (int)rest : V);
        }
      }
    }
  }
}
