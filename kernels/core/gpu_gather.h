// SPDX-License-Identifier: Apache-2.0
// Launches of gathers along rows of the output: a warp takes 32 neighbouring pixels at a time, one per lane, so that
// reads lie close together and writes are whole words.
#pragma once
#include "core/gpu_rows.h"

// Base of gathers, with defaults for what most do not need. Besides `read`, a gather has functions for rows of its
// output: `begin_row` finds what the pixels of a row share, a Row of its own; `begin_read` asks for what a pixel needs,
// a Fetched, and `end_read` waits for it and makes the pixel, so that several reads are in flight.
struct GatherBase {
  static constexpr int kAtOnce = 4;        // pixels per lane
  static constexpr bool kAlways = false;   // end_read is harmless without begin_read
  static constexpr bool kByBlock = false;  // whether to call begin_block
  static constexpr bool kByStrip = false;  // whether to call begin_strip
  struct Memory {};                        // in shared memory
  // Called by all threads of a block at the beginning of a sample, between two barriers.
  DEVICE void begin_block(Memory &) const {}
  // Called by a warp before it reads the kAtOnce * 32 pixels of a row from column `strip` on; some may lie outside.
  template <class Row>
  DEVICE void begin_strip(Memory &, const Row &, int32_t) const {}
};

// Base of gathers over the kind To that read in one step: Derived has only `read`.
template <class Derived, class To>
struct GatherAtOnce : GatherBase {
  static constexpr int kAtOnce = 2;
  struct Row {
    int32_t at[To::N];
  };
  struct Fetched {
    int32_t column;
  };
  DEVICE void begin_row(Row &row, const int32_t (&at)[To::N]) const {
#pragma unroll
    for (int d = 0; d < To::N; d++) row.at[d] = at[d];
  }
  DEVICE void begin_read_anywhere(const Row &, int32_t column, Fetched &fetched) const { fetched.column = column; }
  DEVICE void begin_read(const Memory &, const Row &, int32_t, int32_t column, Fetched &fetched) const {
    fetched.column = column;
  }
  DEVICE void end_read(const Row &row, const Fetched &fetched, typename To::T (&pixel)[To::C]) const {
    int32_t at[To::N];
#pragma unroll
    for (int d = 0; d < To::N; d++) at[d] = d < To::N - 1 ? row.at[d] : fetched.column;
    static_cast<const Derived *>(this)->read(at, pixel);
  }
};

// How a warp writes 32 neighbouring pixels of C channels, one per lane. A pixel whose size in bytes is a power of two
// is written directly; otherwise words are made of the pixels of neighbouring lanes.
template <class Out, int C>
struct LanePixels {
  static constexpr int kBytes = C * sizeof(Out);
  static constexpr bool kDirect = kBytes <= 16 && (kBytes & (kBytes - 1)) == 0, kShuffled = kBytes == 3;
  static constexpr int kWords = kDirect || kShuffled || sizeof(Out) > 4 ? 0 : 32 * kBytes / 4;  // shared, per warp
  static constexpr int kAlign = kDirect ? kBytes : 4;
  // The number of pixels before the first one aligned to 32 bytes, the unit of memory access; 0 if none is aligned.
  DEVICE static int lead(const Out *row) {
    constexpr unsigned kUnits = 32 / sizeof(Out);
    const unsigned first = (unsigned)((unsigned long long)row / sizeof(Out)) & (kUnits - 1);
    // 11 is the inverse of 3 modulo 32, and modulo smaller powers of two.
    if constexpr (C % 2) return (int)((0u - first) * (C == 3 ? 11u : 1u) & (kUnits - 1));
    return first % C ? 0 : (int)((kUnits - first) & (kUnits - 1)) / C;
  }
  DEVICE static bool is_aligned(const Out *p) { return ((unsigned long long)p & (kAlign - 1)) == 0; }
  // A pixel waiting to be written: in one register if it fits.
  struct Packed {
    Out x[kShuffled ? 1 : C];
    uint32_t word;
    DEVICE void pack(const Out (&from)[C]) {
      word = 0;
#pragma unroll
      for (int c = 0; c < C; c++) {
        if constexpr (kShuffled)
          word |= (uint32_t)(uint8_t)from[c] << 8 * c;
        else
          x[c] = from[c];
      }
    }
    DEVICE Out channel(int c) const {
      if constexpr (kShuffled)
        return (Out)(word >> 8 * c);
      else
        return x[c];
    }
  };
  // `p` is aligned and the address of lane 0's pixel.
  DEVICE static void write(Out *p, const Packed &pixel, int lane, uint32_t *shared) {
    if constexpr (kDirect) {
      Out y[C] __attribute__((aligned(16)));
#pragma unroll
      for (int c = 0; c < C; c++) y[c] = pixel.x[c];
      store_aligned(p + lane * C, y);
    } else if constexpr (kShuffled) {
      // Word i holds the bytes from 4 i on: of pixel 4 i / 3, and of the next one.
      const int first = (unsigned)(4 * lane) / 3u, ahead = 4 * lane - 3 * first;
      const uint32_t low = __shfl_sync(~0u, pixel.word, first & 31),
                     high = __shfl_sync(~0u, pixel.word, (first + 1) & 31);
      if (lane < 24) ((uint32_t *)p)[lane] = __funnelshift_r(low << 8, high, 8 * ahead + 8);
    } else if constexpr (kWords > 0) {
      Out *const pixels = (Out *)shared;
#pragma unroll
      for (int c = 0; c < C; c++) pixels[lane * C + c] = pixel.x[c];
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kWords; i += 32)
        if (i + lane < kWords) ((uint32_t *)p)[i + lane] = shared[i + lane];
      __syncwarp();
    } else {
#pragma unroll
      for (int c = 0; c < C; c++) p[lane * C + c] = pixel.x[c];
    }
  }
};

constexpr int kGatherWarps = 8;

// Each warp takes a row. A lane reads several pixels, 32 columns apart, before it writes the first. `Load` is a Gather.
template <class Load, class Chain>
DEVICE void run_gather(const Launch &l) {
  typedef typename Load::Head Head;
  typedef typename Chain::Kind To;
  typedef typename Chain::From From;
  typedef typename To::T Out;
  constexpr int N = To::N, C = To::C, kStep = To::kInterleaved ? C : 1, U = Head::kAtOnce, kStrip = 32 * U;
  constexpr int kPlanes = C / kStep;
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
        typename Head::Fetched fetched[U];
        Found<Chain::kSteps> found[U];
        int32_t places[kPlain ? 1 : U][N];  // of the head's output
        if constexpr (Head::kByStrip && kPlain) head.begin_strip(memory, along, strip);
        const auto ask = [&](int k, int32_t column) {
          if constexpr (kPlain) {
            head.begin_read(memory, along, strip, column, fetched[k]);
          } else {
#pragma unroll
            for (int d = 0; d < N; d++) places[k][d] = d < N - 1 ? at[d] : column;
            chain.locate(places[k], found[k]);
            if (Chain::kFills && found[k].filled) return;
            head.begin_row(along, places[k]);
            head.begin_read_anywhere(along, places[k][N - 1], fetched[k]);
          }
        };
        const bool is_whole = strip >= 0 && strip + kStrip <= columns;
        if (kPlain && is_whole) {
#pragma unroll
          for (int k = 0; k < U; k++) ask(k, strip + k * 32 + lane);
        } else {
#pragma unroll
          for (int k = 0; k < U; k++)
            if ((uint32_t)(strip + k * 32 + lane) < (uint32_t)columns) ask(k, strip + k * 32 + lane);
        }
        typename Pixels::Packed packed[U][kPlanes];
#pragma unroll
        for (int k = 0; k < U; k++) {
          if (!(kPlain && Head::kAlways) && (uint32_t)(strip + k * 32 + lane) >= (uint32_t)columns) continue;
          typename From::T in[From::C];
          Out x[C];
          if (kPlain || !Chain::kFills || !found[k].filled) {
            if constexpr (!kPlain) head.begin_row(along, places[k]);
            head.end_read(along, fetched[k], in);
          }
          chain.map(x, in, found[k]);
#pragma unroll
          for (int c = 0; c < kPlanes; c++) packed[k][c].pack(*(const Out(*)[kStep])(x + c));
        }
        Out *const p = line + (int64_t)strip * kStep;
        if (To::kInterleaved && is_aligned && is_whole) {
#pragma unroll
          for (int k = 0; k < U; k++)
            Pixels::write(p + k * 32 * kStep, packed[k][0], lane, words + warp * Pixels::kWords);
        } else {
#pragma unroll
          for (int k = 0; k < U; k++) {
            const int32_t first = strip + k * 32;
            if (To::kInterleaved && is_aligned && first >= 0 && first + 32 <= columns) {
              Pixels::write(p + k * 32 * kStep, packed[k][0], lane, words + warp * Pixels::kWords);
            } else if ((uint32_t)(first + lane) < (uint32_t)columns) {
              Out *const mine = p + (k * 32 + lane) * kStep;
#pragma unroll
              for (int c = 0; c < C; c++)
                mine[To::kInterleaved ? c : c * to.channel] = packed[k][c / kStep].channel(c % kStep);
            }
          }
        }
      }
    }
  }
}
