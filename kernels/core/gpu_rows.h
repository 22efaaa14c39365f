// SPDX-License-Identifier: Apache-2.0
// Launches over pixels of few channels, in runs along the rows of the last output.
#pragma once
#include "core/gpu_runs.h"

// How many pixels of a row come before the first one at a multiple of the alignment, so that runs of P pixels begin
// there; 0 if none does. C channels of T are neighbours.
template <class T, int C, int P>
DEVICE int lead_of_row(const T *row) {
  constexpr unsigned kUnits = alignment_of_run<T, P * C>() / sizeof(T);  // elements, a power of two
  const unsigned first = (unsigned)((unsigned long long)row / sizeof(T)) & (kUnits - 1);
  if constexpr (C % 2) {                            // C * x = -first modulo kUnits has a solution: by the inverse of C
    constexpr unsigned kInverse = C == 3 ? 11 : 1;  // modulo 16
    const unsigned x = (0u - first) * kInverse & (kUnits - 1);
    return (int)(x % P);
  } else {
    return first % C ? 0 : (int)((kUnits - first) / C % P);
  }
}

// The coordinates of the beginning of a row.
template <int N>
DEVICE void place_of_row(int32_t (&at)[N], int32_t row, const int32_t (&extent)[N]) {
#pragma unroll
  for (int d = N - 2; d > 0; d--) {
    const int32_t above = (uint32_t)row / (uint32_t)extent[d];
    at[d] = row - above * extent[d];
    row = above;
  }
  if (N > 1) at[0] = row;
  at[N - 1] = 0;
}

// What stands at `n` places from `at` on along a row, one by one: where they come from several places or are filled.
template <class K, class Chain>
DEVICE void write_places(const Chain &chain, const Place<K> &from, const Place<typename Chain::Kind> &to,
                         const int32_t (&at)[K::N], int n) {
  typedef typename Chain::Kind To;
  constexpr int N = To::N, kAtOnce = 1;
#pragma unroll 1
  for (int i = 0; i < n; i += kAtOnce) {
    typename K::T in[kAtOnce][K::C];
    Found<Chain::kSteps> found[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      int32_t place[N];
#pragma unroll
      for (int d = 0; d < N; d++) place[d] = at[d];
      place[N - 1] += i + k < n ? i + k : 0;
      chain.locate(place, found[k]);
      if (Chain::kFills && found[k].filled) continue;
      const typename K::T *p = from.at(place);
#pragma unroll
      for (int c = 0; c < K::C; c++) in[k][c] = load(p + (K::kInterleaved ? c : c * from.channel));
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; k++) {
      if (i + k >= n) continue;
      typename To::T x[To::C], *p = to.at(at) + (int64_t)(i + k) * (To::kInterleaved ? To::C : 1);
      chain.map(x, in[k], found[k]);
#pragma unroll
      for (int c = 0; c < To::C; c++) p[To::kInterleaved ? c : c * to.channel] = x[c];
    }
  }
}

// Where a run of P pixels of a row of the last output is read: [begin, end) of them exist.
template <class K, class Chain, int P>
struct Run {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  static constexpr int CO = To::C, CI = K::C, kStep = To::kInterleaved ? CO : 1;
  int32_t first, begin, end;

  // Run j of a row whose first run begins `ahead` pixels before it.
  DEVICE Run(int32_t j, int32_t ahead, int32_t columns) {
    first = j * P - ahead;
    begin = first < 0 ? -first : 0;
    end = columns - first < P ? columns - first : P;
  }
  DEVICE bool exists() const { return begin < end; }
  // What is read of a run: pixels, or a part of each plane.
  struct Read {
    static constexpr int kParts = K::kInterleaved ? 1 : CI, V = P * CI / kParts;
    UnalignedRun<In, V> part[kParts];
  };
  // Where it is read from the source of the row's column 0, from which on columns follow each other, or go back.
  DEVICE const In *source(const In *zero, bool backwards) const {
    return zero + (int64_t)(backwards ? -(first + P - 1) : first) * (K::kInterleaved ? CI : 1);
  }
  DEVICE void read(Read &x, const Place<K> &from, const In *zero, bool backwards) const {
    const In *p = source(zero, backwards);
    constexpr int kEach = Read::V / P;
    const int lo = backwards ? P - end : begin, hi = backwards ? P - begin : end;
#pragma unroll
    for (int c = 0; c < Read::kParts; c++) x.part[c].read(p + c * from.channel, lo * kEach, hi * kEach);
  }
  // Where a pixel's channel lies among what is read.
  DEVICE static constexpr int element(int p, int c) { return K::kInterleaved ? p * CI + c : c * P + p; }
  // What was read, on its way through the chain.
  DEVICE void map(Out (&y)[P * CO], const Chain &chain, Read &read, const Place<K> &from, const In *zero,
                  const Found<Chain::kSteps> &inside, bool backwards) const {
    In x[P * CI] __attribute__((aligned(16)));
    const In *p = source(zero, backwards);
#pragma unroll
    for (int c = 0; c < Read::kParts; c++) read.part[c].get(*(In(*)[Read::V])(x + c * Read::V), p + c * from.channel);
    if (backwards) {
#pragma unroll
      for (int p = 0; p < P / 2; p++)
#pragma unroll
        for (int c = 0; c < CI; c++) {
          const In other = x[element(p, c)];
          x[element(p, c)] = x[element(P - 1 - p, c)];
          x[element(P - 1 - p, c)] = other;
        }
    }
#pragma unroll
    for (int p = 0; p < P; p++) {
      In in[CI];
      Out pixel[CO];
#pragma unroll
      for (int c = 0; c < CI; c++) in[c] = x[element(p, c)];
      chain.map(pixel, in, inside);
#pragma unroll
      for (int c = 0; c < CO; c++) y[To::kInterleaved ? p * CO + c : c * P + p] = pixel[c];
    }
  }
  // To the row that begins at `line`.
  DEVICE void write(const Out (&y)[P * CO], const Place<To> &to, Out *line) const {
    Out *const out = line + (int64_t)first * kStep;
    if constexpr (To::kInterleaved) {
      store_run(out, y, begin * CO, end * CO);
    } else {
#pragma unroll
      for (int c = 0; c < CO; c++) store_run(out + c * to.channel, *(const Out(*)[P])(y + c * P), begin, end);
    }
  }
};

// The same in a form in which the compiler sees that nothing is filled.
template <int STEPS>
DEVICE Found<STEPS> unfilled(const Found<STEPS> &found) {
  Found<STEPS> inside;
#pragma unroll
  for (int i = 0; i <= STEPS; i++) inside.channel[i] = found.channel[i];
  return inside;
}

// Whether columns [from, to] of the row that begins at `at` come from neighbours in one row of the source. Then `at`
// becomes the place of column `from` there, and `step` is 1, or -1 where it goes back.
template <int N, class Chain>
DEVICE bool is_stretch(const Chain &chain, int32_t (&at)[N], int32_t from, int32_t to, Found<Chain::kSteps> &found,
                       int32_t &step) {
  int32_t last[N];
#pragma unroll
  for (int d = 0; d < N; d++) last[d] = at[d];
  at[N - 1] = from, last[N - 1] = to;
  Found<Chain::kSteps> found_last;
  chain.locate(at, found);
  chain.locate(last, found_last);
  bool same = !Chain::kFills || (!found.filled && !found_last.filled);
#pragma unroll
  for (int d = 0; d < N - 1; d++) same = same && at[d] == last[d];
  const int32_t length = last[N - 1] - at[N - 1];
  step = length < 0 ? -1 : 1;
  return same && length * step == to - from && chain.is_straight();
}

// Where runs are longer than what a thread writes at once, a warp that wrote them as they are would write to many
// places at a time, each of them several times. So it turns them in shared memory.
template <class T, int V, int THREADS, bool NEEDED>
struct Staged {
  static constexpr int kBlocks = V * sizeof(T) / 16;
  static constexpr bool kUsed = NEEDED && V * sizeof(T) % 16 == 0 && kBlocks > 1;
};

// Writes a warp's runs of a row, one after the other from that of lane 0 on, to where this begins; `is_whole`: of a
// lane, whether its run is written. Its blocks lie in `staged`.
template <int BLOCKS>
DEVICE void write_staged(uint4 *out, uint4 *staged, const uint4 *mine, bool is_whole, int lane) {
  if (is_whole) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) staged[lane * BLOCKS + i] = mine[i];
  }
  const unsigned whole = __ballot_sync(~0u, is_whole);  // a barrier, too
  __syncwarp();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    const int block = i * 32 + lane;
    if (whole >> (block / BLOCKS) & 1) out[block] = staged[block];
  }
  __syncwarp();
}

// Chains over pixels of few channels: G neighbouring threads take a row of the last output, each of them runs of P
// pixels. Runs are aligned in the output, so that the first and the last of a row may be cut. U runs are read before
// the first is written.
template <class K, int IN, class Chain, int P, int G, int THREADS, int U>
DEVICE void run_rows(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  typedef Run<K, Chain, P> OneRun;
  typedef Staged<Out, P * To::C, THREADS, To::kInterleaved && G == 32> Stage;
  constexpr int N = To::N, CO = To::C, kRows = THREADS / G;
  __shared__ uint4 staged[Stage::kUsed ? THREADS * Stage::kBlocks : 1];
  const int lane = threadIdx.x % G;
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    int32_t extent[N], rows = 1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      extent[d] = (int32_t)To::extent(out, d);
      if (d < N - 1) rows *= extent[d];
    }
    const int32_t columns = extent[N - 1];
    int32_t row = blockIdx.x * kRows + threadIdx.x / G;
    if (row >= rows || columns == 0) continue;
    Chain chain;
    Place<To> to;
    Place<K> from;
    chain.begin(l, sample);
    to.begin(out);
    from.begin(l.tensors[IN][sample]);
    for (; row < rows; row += gridDim.x * kRows) {
      int32_t at[N], step;
      place_of_row(at, row, extent);
      Out *const line = to.at(at);
      const int32_t ahead = (P - lead_of_row < Out, To::kInterleaved ? CO : 1, P > (line)) % P;
      const int32_t n_runs = (columns + ahead + P - 1) / P;
      Found<Chain::kSteps> found;
      if (is_stretch(chain, at, 0, columns - 1, found, step)) {
        const In *const zero = from.at(at);
        const Found<Chain::kSteps> inside = unfilled(found);
        const bool is_aligned = ((unsigned long long)(line - ahead * CO) & 15) == 0;
        for (int32_t j = 0; j < n_runs; j += U * G) {
          typename OneRun::Read x[U];
#pragma unroll
          for (int k = 0; k < U; k++) {
            const OneRun run(j + k * G + lane, ahead, columns);
            if (run.exists()) run.read(x[k], from, zero, step < 0);
          }
#pragma unroll
          for (int k = 0; k < U; k++) {
            const OneRun run(j + k * G + lane, ahead, columns);
            if (k > 0 && j + k * G >= n_runs) continue;
            Out y[P * CO] __attribute__((aligned(16)));
            if (run.exists()) run.map(y, chain, x[k], from, zero, inside, step < 0);
            bool is_whole = false;
            if constexpr (Stage::kUsed) {
              is_whole = is_aligned && run.begin == 0 && run.end == P;
              uint4 *const first = (uint4 *)(line + (int64_t)((j + k * G) * P - ahead) * CO);
              write_staged<Stage::kBlocks>(first, staged + (threadIdx.x - lane) * Stage::kBlocks, (const uint4 *)y,
                                           is_whole, lane);
            }
            if (!is_whole && run.exists()) run.write(y, to, line);
          }
        }
      } else {
        for (int32_t j = lane; j < n_runs; j += G) {
          const OneRun run(j, ahead, columns);
          place_of_row(at, row, extent);
          if (is_stretch(chain, at, run.first + run.begin, run.first + run.end - 1, found, step)) {
            at[N - 1] -= step * (run.first + run.begin);
            const In *const zero = from.at(at);
            typename OneRun::Read x;
            Out y[P * CO] __attribute__((aligned(16)));
            run.read(x, from, zero, step < 0);
            run.map(y, chain, x, from, zero, unfilled(found), step < 0);
            run.write(y, to, line);
          } else {
            place_of_row(at, row, extent);
            at[N - 1] = run.first + run.begin;
            write_places<K, Chain>(chain, from, to, at, run.end - run.begin);
          }
        }
      }
    }
  }
}

// The same for chains of one coordinate: runs of the whole sample.
template <class K, int IN, class Chain, int P, int THREADS, int U>
DEVICE void run_pixels(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  constexpr int CO = To::C, CI = K::C;
  static_assert(To::N == 1 && To::kInterleaved && !Chain::kFills, "");
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    const int32_t columns = (int32_t)(volume_of(out) / CO);
    Out *const line = out.template as<Out>();
    const int32_t ahead = (P - lead_of_row<Out, CO, P>(line)) % P, n_runs = (columns + ahead + P - 1) / P;
    int32_t first = blockIdx.x * (THREADS * U) + threadIdx.x;
    if (first >= n_runs) continue;
    Chain chain;
    Place<To> to;
    Place<K> from;
    chain.begin(l, sample);
    to.begin(out);
    from.begin(l.tensors[IN][sample]);
    const Found<Chain::kSteps> inside;
    for (; first < n_runs; first += gridDim.x * (THREADS * U)) {
      typename Run<K, Chain, P>::Read x[U];
#pragma unroll
      for (int k = 0; k < U; k++) {
        const Run<K, Chain, P> run(first + k * THREADS, ahead, columns);
        if (run.exists()) run.read(x[k], from, from.data, false);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const Run<K, Chain, P> run(first + k * THREADS, ahead, columns);
        if (!run.exists()) continue;
        Out y[P * CO] __attribute__((aligned(16)));
        run.map(y, chain, x[k], from, from.data, inside, false);
        run.write(y, to, line);
      }
    }
  }
}
