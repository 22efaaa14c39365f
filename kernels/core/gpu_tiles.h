// SPDX-License-Identifier: Apache-2.0
// Launches whose output has another last coordinate than the source: tiles are turned in shared memory.
#pragma once
#include "core/gpu_chain.h"

// A block takes tiles of 32 x 32 places of the last output: along its last coordinate and along A, which counts along
// rows of the source. It reads along A and writes along the last one.
template <class K, int IN, class Chain, int A>
DEVICE void run_tiles(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename K::T In;
  typedef typename To::T Out;
  constexpr int N = To::N, B = N - 1, kSide = 32, kDown = 8, kEach = kSide / kDown;
  struct Pixel {
    Out c[To::C];
  };
  __shared__ Pixel turned[kSide][kSide + 1];
  const int lane = threadIdx.x % kSide, warp = threadIdx.x / kSide;
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    int32_t extent[N], n_tiles = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      extent[d] = (int32_t)To::extent(out, d);
      n_tiles *= d == A || d == B ? (extent[d] + kSide - 1) / kSide : extent[d];
    }
    if ((int32_t)blockIdx.x >= n_tiles) continue;
    Chain chain;
    Place<To> to;
    Place<K> from;
    chain.begin(l, sample);
    to.begin(out);
    from.begin(l.tensors[IN][sample]);
    for (int32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      int32_t first[N], rest = tile;
#pragma unroll
      for (int d = N - 1; d >= 0; d--) {
        const bool is_side = d == A || d == B;
        const uint32_t n = is_side ? (extent[d] + kSide - 1) / kSide : extent[d];
        const int32_t above = (uint32_t)rest / n;
        first[d] = (rest - above * (int32_t)n) * (is_side ? kSide : 1);
        rest = above;
      }
      In in[kEach][K::C];
      Found<Chain::kSteps> found[kEach];
#pragma unroll
      for (int k = 0; k < kEach; k++) {
        int32_t at[N];
#pragma unroll
        for (int d = 0; d < N; d++) at[d] = first[d];
        at[A] += lane, at[B] += warp + k * kDown;
        if (at[A] >= extent[A] || at[B] >= extent[B]) continue;
        chain.locate(at, found[k]);
        if (Chain::kFills && found[k].filled) continue;
        const In *p = from.at(at);
#pragma unroll
        for (int c = 0; c < K::C; c++) in[k][c] = load(p + (K::kInterleaved ? c : c * from.channel));
      }
#pragma unroll
      for (int k = 0; k < kEach; k++) {
        if (first[A] + lane >= extent[A] || first[B] + warp + k * kDown >= extent[B]) continue;
        Out x[To::C];
        chain.map(x, in[k], found[k]);
#pragma unroll
        for (int c = 0; c < To::C; c++) turned[warp + k * kDown][lane].c[c] = x[c];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kEach; k++) {
        int32_t at[N];
#pragma unroll
        for (int d = 0; d < N; d++) at[d] = first[d];
        at[A] += warp + k * kDown, at[B] += lane;
        if (at[A] >= extent[A] || at[B] >= extent[B]) continue;
        Out *p = to.at(at);
#pragma unroll
        for (int c = 0; c < To::C; c++) p[To::kInterleaved ? c : c * to.channel] = turned[lane][warp + k * kDown].c[c];
      }
      __syncthreads();
    }
  }
}
