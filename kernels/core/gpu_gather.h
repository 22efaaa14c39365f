// SPDX-License-Identifier: Apache-2.0
// Launches of gathers along rows of the output: a warp takes 32 neighbouring pixels at a time, a lane each, so that
// what is read lies close together, and writes them as whole words.
#pragma once
#include "core/gpu_rows.h"

// Base of gathers, with what most of them do not need. A gather has, beside `read`, what is asked along rows of its
// output, where no LOCAL is behind it: `begin_row` finds what the pixels of a row share, a Row of its own.
struct GatherBase {
  static constexpr int kAtOnce = 4;        // pixels of a lane
  static constexpr bool kByBlock = false;  // whether begin_block is to be called,
  static constexpr bool kByStrip = false;  // whether begin_strip is
  struct Memory {};                        // in shared memory
  // By all threads of a block at the beginning of a sample; they wait for each other before and behind it.
  DEVICE void begin_block(Memory &) const {}
  // By a warp before it reads the kAtOnce * 32 pixels of a row from column `strip` on; some may lie outside.
  template <class Row>
  DEVICE void begin_strip(Memory &, const Row &, int32_t) const {}
};

// How a warp writes 32 neighbouring pixels of C channels, lane i the i-th. What a lane has at once, its pixel, is
// written at once where that is a power of two of bytes; else words are made of the pixels of neighbouring lanes.
template <class Out, int C>
struct LanePixels {
  static constexpr int kBytes = C * sizeof(Out);
  static constexpr bool kDirect = kBytes <= 16 && (kBytes & (kBytes - 1)) == 0, kShuffled = kBytes == 3;
  static constexpr int kWords = kDirect || kShuffled || sizeof(Out) > 4 ? 0 : 32 * kBytes / 4;  // shared, of a warp
  static constexpr int kAlign = kDirect ? kBytes : 4;
  // How many pixels before the first one at the alignment of what the memory takes at once, 32 bytes; 0 if none does.
  DEVICE static int lead(const Out *row) {
    constexpr unsigned kUnits = 32 / sizeof(Out);
    const unsigned first = (unsigned)((unsigned long long)row / sizeof(Out)) & (kUnits - 1);
    // The inverse of 3 modulo 32, and so modulo less, is 11.
    if constexpr (C % 2) return (int)((0u - first) * (C == 3 ? 11u : 1u) & (kUnits - 1));
    return first % C ? 0 : (int)((kUnits - first) & (kUnits - 1)) / C;
  }
  DEVICE static bool is_aligned(const Out *p) { return ((unsigned long long)p & (kAlign - 1)) == 0; }
  // To `p`, which is aligned and the place of lane 0's pixel.
  DEVICE static void write(Out *p, const Out (&x)[C], int lane, uint32_t *shared) {
    if constexpr (kDirect) {
      Out y[C] __attribute__((aligned(16)));
#pragma unroll
      for (int c = 0; c < C; c++) y[c] = x[c];
      store_aligned(p + lane * C, y);
    } else if constexpr (kShuffled) {
      uint32_t mine = 0;
#pragma unroll
      for (int c = 0; c < C; c++) mine |= (uint32_t)(uint8_t)x[c] << 8 * c;
      // Word i has the bytes from 4 i on: of pixel 4 i / 3, and of the next one.
      const int first = (unsigned)(4 * lane) / 3u, ahead = 4 * lane - 3 * first;
      const uint32_t low = __shfl_sync(~0u, mine, first & 31), high = __shfl_sync(~0u, mine, (first + 1) & 31);
      if (lane < 24) ((uint32_t *)p)[lane] = __funnelshift_r(low << 8, high, 8 * ahead + 8);
    } else if constexpr (kWords > 0) {
      Out *const pixels = (Out *)shared;
#pragma unroll
      for (int c = 0; c < C; c++) pixels[lane * C + c] = x[c];
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kWords; i += 32)
        if (i + lane < kWords) ((uint32_t *)p)[i + lane] = shared[i + lane];
      __syncwarp();
    } else {
#pragma unroll
      for (int c = 0; c < C; c++) p[lane * C + c] = x[c];
    }
  }
};

constexpr int kGatherWarps = 8;

// A warp of a block takes a row. A lane reads several pixels, 32 columns apart, before the first is written. `Load` is
// a Gather.
template <class Load, class Chain>
DEVICE void run_gather(const Launch &l) {
  typedef typename Load::Head Head;
  typedef typename Chain::Kind To;
  typedef typename Chain::From From;
  typedef typename To::T Out;
  constexpr int N = To::N, C = To::C, kStep = To::kInterleaved ? C : 1, U = Head::kAtOnce, kStrip = 32 * U;
  constexpr bool kPlain = Chain::kSteps == 0;  // the head's pixels stay where they are
  typedef LanePixels<Out, kStep> Pixels;
  __shared__ uint32_t words[Pixels::kWords > 0 ? kGatherWarps * Pixels::kWords : 1];
  __shared__ typename Head::Memory memory;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    int32_t extent[N], rows = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      extent[d] = (int32_t)To::extent(out, d);
      if (d < N - 1) rows *= extent[d];
    }
    const int32_t columns = extent[N - 1];
    if ((int32_t)blockIdx.x * kGatherWarps >= rows || columns == 0) continue;
    Load load;
    Chain chain;
    Place<To> to;
    load.begin(l, sample);
    chain.begin(l, sample);
    to.begin(out);
    const Head &head = load.head;
    if constexpr (Head::kByBlock && kPlain) {
      __syncthreads();
      head.begin_block(memory);
      __syncthreads();
    }
    for (int32_t row = blockIdx.x * kGatherWarps + warp; row < rows; row += gridDim.x * kGatherWarps) {
      int32_t at[N];
      place_of_row(at, row, extent);
      Out *const line = to.at(at);
      typename Head::Row along;
      if constexpr (kPlain) head.begin_row(along, at);
      const int32_t begin = -((32 - Pixels::lead(line)) & 31);
      const bool is_aligned = Pixels::is_aligned(line + (int64_t)begin * kStep);
      for (int32_t strip = begin; strip < columns; strip += kStrip) {
        typename From::T in[U][From::C];
        Found<Chain::kSteps> found[U];
        if constexpr (Head::kByStrip && kPlain) head.begin_strip(memory, along, strip);
#pragma unroll
        for (int k = 0; k < U; k++) {
          const int32_t column = strip + k * 32 + lane;
          if ((uint32_t)column >= (uint32_t)columns) continue;
          if constexpr (kPlain) {
            head.read_in_row(memory, along, strip, column, in[k]);
          } else {
            int32_t place[N];
#pragma unroll
            for (int d = 0; d < N; d++) place[d] = d < N - 1 ? at[d] : column;
            chain.locate(place, found[k]);
            if (!Chain::kFills || !found[k].filled) head.read(place, in[k]);
          }
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
          const int32_t first = strip + k * 32, column = first + lane;
          if (first >= columns) break;
          const bool has = (uint32_t)column < (uint32_t)columns;
          Out x[C] = {};
          if (has) chain.map(x, in[k], found[k]);
          Out *const p = line + (int64_t)first * kStep;
          if (To::kInterleaved && is_aligned && first >= 0 && first + 32 <= columns) {
            Pixels::write(p, *(const Out(*)[kStep])x, lane, words + warp * Pixels::kWords);
          } else if (has) {
#pragma unroll
            for (int c = 0; c < C; c++) p[lane * kStep + (To::kInterleaved ? c : c * to.channel)] = x[c];
          }
        }
      }
    }
  }
}
