// SPDX-License-Identifier: Apache-2.0
// Launches over pixels of few channels, in runs along the rows of the last output.
#pragma once
#include "core/gpu_runs.h"

// The number of pixels of a row before the first aligned one, at which runs of P pixels can begin; 0 if none is
// aligned. C channels of T are contiguous.
template <class T, int C, int P>
DEVICE int lead_of_row(const T *row) {
  constexpr unsigned kUnits = alignment_of_run<T, P * C>() / sizeof(T);  // elements, a power of two
  const unsigned first = (unsigned)((unsigned long long)row / sizeof(T)) & (kUnits - 1);
  if constexpr (C % 2) {                            // C * x = -first modulo kUnits has a solution: by the
                                                    // inverse of C
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

// Writes `n` places from `at` on along a row one by one: for places that come from several parts or are filled.
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

// Whether columns [from, to] of the row that begins at `at` come from neighbours in one row of the source. If so, sets
// `at` to the place of column `from` there, and `step` to 1, or -1 if it goes backwards.
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

// Pixels of a row that come from neighbours in one row of the source, forwards or backwards.
template <class K, class Chain, int P>
struct Stretch {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  static constexpr int CO = To::C, CI = K::C, kIn = K::kInterleaved ? CI : 1, kOut = To::kInterleaved ? CO : 1;
  static constexpr int kParts = K::kInterleaved ? 1 : CI, V = P * CI / kParts;
  typedef UnalignedRun<In, V> Read[kParts];
  const Chain &chain;
  const Place<K> &from;
  const Place<To> &to;
  const In *zero;  // the source of column 0
  Out *line;       // column 0
  bool backwards;
  Found<Chain::kSteps> inside;

  DEVICE Stretch(const Chain &chain, const Place<K> &from, const Place<To> &to, const In *zero, Out *line,
                 bool backwards, const Found<Chain::kSteps> &found)
      : chain(chain), from(from), to(to), zero(zero), line(line), backwards(backwards) {
    // In this form the compiler sees that nothing is filled.
#pragma unroll
    for (int i = 0; i <= Chain::kSteps; i++) inside.channel[i] = found.channel[i];
  }
  // The address from which the P pixels from a column on are read.
  DEVICE const In *source(int32_t column) const {
    return zero + (int64_t)(backwards ? -(column + P - 1) : column) * kIn;
  }
  DEVICE bool reads_aligned(int32_t column) const {
    unsigned long long bits = (unsigned long long)source(column);
    if constexpr (kParts > 1) bits |= (unsigned long long)(from.channel * sizeof(In));
    return (bits & (alignment_of_run<In, V>() - 1)) == 0;
  }
  DEVICE bool writes_aligned(int32_t column) const {
    constexpr unsigned kAlign = To::kInterleaved ? alignment_of_run<Out, P * CO>() : alignment_of_run<Out, P>();
    unsigned long long bits = (unsigned long long)(line + (int64_t)column * kOut);
    if constexpr (!To::kInterleaved) bits |= (unsigned long long)(to.channel * sizeof(Out));
    return (bits & (kAlign - 1)) == 0;
  }
  DEVICE void read(Read &x, int32_t column, bool is_aligned) const {
    const In *p = source(column);
#pragma unroll
    for (int c = 0; c < kParts; c++) x[c].read(p + c * from.channel, is_aligned);
  }
  // The index of a pixel's channel in what is read.
  DEVICE static constexpr int element(int p, int c) { return K::kInterleaved ? p * CI + c : c * P + p; }
  // Takes what was read through the chain.
  DEVICE void map(Out (&y)[P * CO], Read &read, int32_t column) const {
    In x[P * CI] __attribute__((aligned(16)));
    const In *p = source(column);
#pragma unroll
    for (int c = 0; c < kParts; c++) read[c].get(*(In(*)[V])(x + c * V), p + c * from.channel);
    constexpr bool kTurned = P * CI * sizeof(In) <= 16;  // longer runs would take too many registers
    if (kTurned && backwards) {
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
      for (int c = 0; c < CI; c++) in[c] = !kTurned && backwards ? x[element(P - 1 - p, c)] : x[element(p, c)];
      chain.map(pixel, in, inside);
#pragma unroll
      for (int c = 0; c < CO; c++) y[To::kInterleaved ? p * CO + c : c * P + p] = pixel[c];
    }
  }
  DEVICE void write(const Out (&y)[P * CO], int32_t column, bool is_aligned) const {
    Out *const out = line + (int64_t)column * kOut;
    constexpr int kRuns = To::kInterleaved ? 1 : CO, kEach = P * CO / kRuns;
#pragma unroll
    for (int c = 0; c < kRuns; c++) {
      const Out(&part)[kEach] = *(const Out(*)[kEach])(y + c * kEach);
      if (is_aligned)
        store_aligned(out + c * to.channel, part);
      else
        store_run(out + c * to.channel, part, 0, kEach);
    }
  }
  DEVICE void write_pixel(int32_t column) const {
    const In *p = zero + (int64_t)(backwards ? -column : column) * kIn;
    In in[CI];
    Out pixel[CO], *const out = line + (int64_t)column * kOut;
#pragma unroll
    for (int c = 0; c < CI; c++) in[c] = load(p + (K::kInterleaved ? c : c * from.channel));
    chain.map(pixel, in, inside);
#pragma unroll
    for (int c = 0; c < CO; c++) out[To::kInterleaved ? c : c * to.channel] = pixel[c];
  }
};

// A row of `columns` pixels as runs of P, the first of which begins `ahead` pixels before the row: runs in [lo, hi) lie
// entirely in it; those before and behind are cut.
template <int P>
struct Cut {
  int32_t columns, ahead, lo, hi;
  DEVICE Cut(int32_t columns, int32_t ahead) : columns(columns), ahead(ahead) {
    lo = ahead > 0, hi = (columns + ahead) / P;
  }
  DEVICE int32_t first(int32_t run) const { return run * P - ahead; }
  DEVICE bool has(int32_t run) const { return run >= lo && run < hi; }
  // Calls do_(column) for each pixel of cut runs, shared among `n` threads.
  template <class Do>
  DEVICE void rest(int thread, int n, Do do_) const {
    if (ahead == 0 && hi * P == columns) return;
    const int32_t before = ahead == 0 ? 0 : P - ahead < columns ? P - ahead : columns;
    const int32_t behind = hi < lo ? columns : first(hi);
    for (int32_t i = thread; i < before + columns - behind; i += n) do_(i < before ? i : behind + i - before);
  }
};

// If runs of wide elements are longer than what a thread writes at once, direct writes of a warp would go to many
// places at a time, several times to each. So it transposes them in shared memory.
template <class Out, int V, bool NEEDED>
struct Staged {
  static constexpr int kBlocks = V * sizeof(Out) / 16;
  static constexpr bool kUsed = NEEDED && V * sizeof(Out) % 16 == 0 && kBlocks > 1 && sizeof(Out) >= 4;
};

// Writes a warp's consecutive runs of a row to `out`, where the run of lane 0 begins; `is_whole`: whether this lane's
// run is written. The warp's blocks lie in `staged`.
template <int BLOCKS>
DEVICE void write_staged(uint4 *out, uint4 *staged, const uint4 *mine, bool is_whole, int lane) {
  if (is_whole) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) staged[lane * BLOCKS + i] = mine[i];
  }
  const unsigned whole = __ballot_sync(~0u, is_whole);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    const int block = i * 32 + lane;
    if (whole >> (block / BLOCKS) & 1) out[block] = staged[block];
  }
  __syncwarp();
}

// Chains over pixels of few channels: G neighbouring threads take a row of the last output, in runs of P pixels each.
// Runs are aligned in the output, so the first and the last of a row may be cut. U runs are read before the first is
// written.
template <class K, int IN, class Chain, int P, int G, int THREADS, int U>
DEVICE void run_rows(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  typedef Stretch<K, Chain, P> Pixels;
  typedef Staged<Out, P * To::C, To::kInterleaved && G == 32> Stage;
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
    // If a whole image comes from one part of the source, its rows follow each other there, too.
    Found<Chain::kSteps> found;
    int32_t at[N] = {}, step = 1;
    const In *top = nullptr;
    int64_t pitch = 0;
    if constexpr (N == 2 && (To::kUnit || !Chain::kByChannel)) {
      int32_t next[2] = {rows > 1, 0}, last[2] = {rows - 1, 0}, last_step;
      Found<Chain::kSteps> other;
      if (is_stretch(chain, last, 0, columns - 1, other, last_step) &&
          is_stretch(chain, at, 0, columns - 1, found, step) && step == last_step) {
        chain.locate(next, other);
        top = from.at(at), pitch = from.at(next) - top;
      }
    }
    for (; row < rows; row += gridDim.x * kRows) {
      place_of_row(at, row, extent);
      Out *const line = to.at(at);
      const Cut<P> cut(columns, (P - lead_of_row < Out, To::kInterleaved ? CO : 1, P > (line)) % P);
      if (top || is_stretch(chain, at, 0, columns - 1, found, step)) {
        const In *const zero = top ? top + row * pitch : from.at(at);
        const Pixels pixels(chain, from, to, zero, line, step < 0, found);
        const bool reads_aligned = pixels.reads_aligned(cut.first(0)),
                   writes_aligned = pixels.writes_aligned(cut.first(0));
        for (int32_t j = 0; j < cut.hi; j += U * G) {
          typename Pixels::Read x[U];
#pragma unroll
          for (int k = 0; k < U; k++) {
            const int32_t run = j + k * G + lane;
            if (cut.has(run)) pixels.read(x[k], cut.first(run), reads_aligned);
          }
#pragma unroll
          for (int k = 0; k < U; k++) {
            const int32_t run = j + k * G + lane;
            if (k > 0 && j + k * G >= cut.hi) continue;
            Out y[P * CO] __attribute__((aligned(16)));
            if (cut.has(run)) pixels.map(y, x[k], cut.first(run));
            if (Stage::kUsed && writes_aligned) {
              uint4 *const first = (uint4 *)(line + (int64_t)cut.first(j + k * G) * CO);
              write_staged<Stage::kBlocks>(first, staged + (threadIdx.x - lane) * Stage::kBlocks, (const uint4 *)y,
                                           cut.has(run), lane);
            } else if (cut.has(run)) {
              pixels.write(y, cut.first(run), writes_aligned);
            }
          }
        }
        cut.rest(lane, G, [&](int32_t column) { pixels.write_pixel(column); });
      } else {
        for (int32_t j = lane; cut.first(j) < columns; j += G) {
          const int32_t begin = cut.first(j) < 0 ? 0 : cut.first(j), last = cut.first(j) + P,
                        end = last < columns ? last : columns;
          place_of_row(at, row, extent);
          if (cut.has(j) && is_stretch(chain, at, begin, end - 1, found, step)) {
            at[N - 1] -= step * begin;
            const Pixels pixels(chain, from, to, from.at(at), line, step < 0, found);
            typename Pixels::Read x;
            Out y[P * CO] __attribute__((aligned(16)));
            pixels.read(x, begin, pixels.reads_aligned(begin));
            pixels.map(y, x, begin);
            pixels.write(y, begin, pixels.writes_aligned(begin));
          } else {
            place_of_row(at, row, extent);
            at[N - 1] = begin;
            write_places<K, Chain>(chain, from, to, at, end - begin);
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
  typedef Stretch<K, Chain, P> Pixels;
  constexpr int CO = To::C;
  static_assert(To::N == 1 && To::kInterleaved && !Chain::kFills, "");
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    const int32_t columns = (int32_t)(volume_of(out) / CO);
    Out *const line = out.template as<Out>();
    const Cut<P> cut(columns, (P - lead_of_row<Out, CO, P>(line)) % P);
    int32_t first = blockIdx.x * (THREADS * U);
    if (columns == 0 || (first >= cut.hi && blockIdx.x > 0)) continue;
    Chain chain;
    Place<To> to;
    Place<K> from;
    chain.begin(l, sample);
    to.begin(out);
    from.begin(l.tensors[IN][sample]);
    const Pixels pixels(chain, from, to, from.data, line, false, Found<Chain::kSteps>());
    const bool reads_aligned = pixels.reads_aligned(cut.first(0)), writes_aligned = pixels.writes_aligned(cut.first(0));
    for (first += threadIdx.x; first < cut.hi; first += gridDim.x * (THREADS * U)) {
      typename Pixels::Read x[U];
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int32_t run = first + k * THREADS;
        if (cut.has(run)) pixels.read(x[k], cut.first(run), reads_aligned);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int32_t run = first + k * THREADS;
        if (!cut.has(run)) continue;
        Out y[P * CO] __attribute__((aligned(16)));
        pixels.map(y, x[k], cut.first(run));
        pixels.write(y, cut.first(run), writes_aligned);
      }
    }
    if (blockIdx.x == 0) cut.rest(threadIdx.x, THREADS, [&](int32_t column) { pixels.write_pixel(column); });
  }
}
