// SPDX-License-Identifier: Apache-2.0
// Launches whose output has another last coordinate than the source: tiles are transposed in shared memory.
#pragma once
#include "core/gpu_chain.h"

// Row pitch in shared memory, such that neither neighbours in a row nor those in a column share a bank.
constexpr int pitch_of_tile(int side, int bytes) { return side + (bytes % 4 == 0 ? 1 : bytes % 2 == 0 ? 2 : 4); }

// A block takes tiles of SIDE x SIDE places of the last output: along its last coordinate and along A, which runs along
// rows of the source. It reads along A and writes along the last one.
template <class K, int IN, class Chain, int A, int SIDE>
struct Turning {
  typedef typename Chain::Kind To;
  typedef typename K::T In;
  typedef typename To::T Out;
  static constexpr int N = To::N, B = N - 1, kLanes = 32, kDown = 8, kAcross = SIDE / kLanes, kRows = SIDE / kDown;
  struct Pixel {
    Out c[To::C];
  };
  typedef Pixel Turned[SIDE][pitch_of_tile(SIDE, sizeof(Pixel))];
  Chain chain;
  Place<To> to;
  Place<K> from;
  int32_t extent[N];

  DEVICE int32_t tiles_along(int d) const { return d == A || d == B ? (extent[d] + SIDE - 1) / SIDE : extent[d]; }

  DEVICE void load_pixel(In (&x)[K::C], const In *p) const {
#pragma unroll
    for (int c = 0; c < K::C; c++) x[c] = load(p + (K::kInterleaved ? c : c * from.channel));
  }
  DEVICE void keep(Pixel &pixel, const In (&in)[K::C], const Found<Chain::kSteps> &found) const {
    Out x[To::C];
    chain.map(x, in, found);
#pragma unroll
    for (int c = 0; c < To::C; c++) pixel.c[c] = x[c];
  }
  // Whether the tile of `along` x `down` places from `first` on lies entirely in the source, every place beside its
  // neighbours: then `origin` is where its first place is read, and the steps are elements from place to place.
  DEVICE bool is_plain(const int32_t (&first)[N], int32_t along, int32_t down, const In *&origin, int64_t &step_a,
                       int64_t &step_b) const {
    if (Chain::kByChannel && !To::kUnit) return false;
    Found<Chain::kSteps> found[2];
    int32_t at[N], other[N];
#pragma unroll
    for (int d = 0; d < N; d++) at[d] = first[d], other[d] = first[d] + (d == A ? along - 1 : d == B ? down - 1 : 0);
    chain.locate(at, found[0]);
    chain.locate(other, found[1]);
    if (!chain.is_straight() || (Chain::kFills && (found[0].filled || found[1].filled))) return false;
    origin = from.at(at);
    // One place further lies inside too, or is not needed.
#pragma unroll
    for (int d = 0; d < N; d++) other[d] = first[d] + (d == A && along > 1);
    chain.locate(other, found[1]);
    step_a = from.at(other) - origin;
#pragma unroll
    for (int d = 0; d < N; d++) other[d] = first[d] + (d == B && down > 1);
    chain.locate(other, found[1]);
    step_b = from.at(other) - origin;
    return true;
  }
  DEVICE void read_plain(Turned &turned, const In *p, int64_t step_a, int64_t step_b, int32_t along, int32_t down,
                         int lane, int warp) const {
    In in[kRows][kAcross][K::C];
    p += lane * step_a + warp * step_b;
#pragma unroll
    for (int j = 0; j < kRows; j++) {
#pragma unroll
      for (int i = 0; i < kAcross; i++)
        if (lane + i * kLanes < along && warp + j * kDown < down) load_pixel(in[j][i], p + i * kLanes * step_a);
      p += kDown * step_b;
    }
    const Found<Chain::kSteps> found;
#pragma unroll
    for (int j = 0; j < kRows; j++)
#pragma unroll
      for (int i = 0; i < kAcross; i++)
        if (lane + i * kLanes < along && warp + j * kDown < down)
          keep(turned[warp + j * kDown][lane + i * kLanes], in[j][i], found);
  }
  DEVICE void read_places(Turned &turned, const int32_t (&first)[N], int32_t along, int32_t down, int lane,
                          int warp) const {
#pragma unroll 1
    for (int j = warp; j < down; j += kDown) {
#pragma unroll 1
      for (int i = lane; i < along; i += kLanes) {
        int32_t at[N];
#pragma unroll
        for (int d = 0; d < N; d++) at[d] = first[d] + (d == A ? i : d == B ? j : 0);
        Found<Chain::kSteps> found;
        In in[K::C];
        chain.locate(at, found);
        if (!Chain::kFills || !found.filled) load_pixel(in, from.at(at));
        keep(turned[j][i], in, found);
      }
    }
  }
  DEVICE void write(const Turned &turned, const int32_t (&first)[N], int32_t along, int32_t down, int lane,
                    int warp) const {
    Out *p = to.at(first) + warp * to.step[A] + lane * to.step[B];
#pragma unroll
    for (int j = 0; j < kRows; j++) {
#pragma unroll
      for (int i = 0; i < kAcross; i++) {
        if (lane + i * kLanes >= down || warp + j * kDown >= along) continue;
        Out *const q = p + i * kLanes * to.step[B];
        const Pixel &pixel = turned[lane + i * kLanes][warp + j * kDown];
#pragma unroll
        for (int c = 0; c < To::C; c++) q[To::kInterleaved ? c : c * to.channel] = pixel.c[c];
      }
      p += kDown * to.step[A];
    }
  }
};

template <class K, int IN, class Chain, int A, int SIDE>
DEVICE void run_tiles(const Launch &l) {
  typedef Turning<K, IN, Chain, A, SIDE> Work;
  constexpr int N = Work::N, B = Work::B;
  __shared__ typename Work::Turned turned;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  FOR_SAMPLES(sample, l) {
    Work work;
    const Tensor out = l.tensors[0][sample];
    int32_t n_tiles = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      work.extent[d] = (int32_t)Chain::Kind::extent(out, d);
      n_tiles *= work.tiles_along(d);
    }
    if ((int32_t)blockIdx.x >= n_tiles) continue;
    work.chain.begin(l, sample);
    work.to.begin(out);
    work.from.begin(l.tensors[IN][sample]);
    for (int32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      int32_t first[N], rest = tile;
#pragma unroll
      for (int d = N - 1; d >= 0; d--) {
        const uint32_t n = work.tiles_along(d);
        const int32_t above = d == 0 ? 0 : (int32_t)((uint32_t)rest / n);
        first[d] = (rest - above * (int32_t)n) * (d == A || d == B ? SIDE : 1);
        rest = above;
      }
      const int32_t along = work.extent[A] - first[A] < SIDE ? work.extent[A] - first[A] : SIDE;
      const int32_t down = work.extent[B] - first[B] < SIDE ? work.extent[B] - first[B] : SIDE;
      const typename K::T *origin;
      int64_t step_a, step_b;
      if (work.is_plain(first, along, down, origin, step_a, step_b))
        work.read_plain(turned, origin, step_a, step_b, along, down, lane, warp);
      else
        work.read_places(turned, first, along, down, lane, warp);
      __syncthreads();
      work.write(turned, first, along, down, lane, warp);
      __syncthreads();
    }
  }
}
