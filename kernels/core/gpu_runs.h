// SPDX-License-Identifier: Apache-2.0
// Launches that read and write runs of neighbours, 16 bytes and more at a time.
#pragma once
#include "core/gpu_local.h"

// V elements from p on, of which p[begin..end) exist. Blocks of 16 bytes (words for short runs) that hold one of them
// are read as a whole: allocations begin and end at multiples of 16.
template <class T, int V>
DEVICE void load_run(T (&x)[V], const T *p, int begin, int end) {
  constexpr int kBytes = V * sizeof(T);
  const unsigned long long address = (unsigned long long)p;
  if constexpr (kBytes % 16 == 0 && sizeof(T) < 8) {
    constexpr int kBlocks = kBytes / 16;
    const uint4 *block = (const uint4 *)(address & ~15ull);
    const int ahead = (int)(address & 15), lo = begin * (int)sizeof(T) + ahead, hi = end * (int)sizeof(T) + ahead;
    if (ahead == 0) {
#pragma unroll
      for (int i = 0; i < kBlocks; i++)
        if (16 * i < hi && 16 * i + 16 > lo) ((uint4 *)x)[i] = __ldg(block + i);
      return;
    }
    uint32_t w[4 * kBlocks + 4] __attribute__((aligned(16)));
#pragma unroll
    for (int i = 0; i <= kBlocks; i++)
      if (16 * i < hi && 16 * i + 16 > lo) ((uint4 *)w)[i] = __ldg(block + i);
    if (address & 8) {
#pragma unroll
      for (int i = 0; i < 4 * kBlocks + 2; i++) w[i] = w[i + 2];
    }
    if (address & 4) {
#pragma unroll
      for (int i = 0; i < 4 * kBlocks + 1; i++) w[i] = w[i + 1];
    }
    const int shift = (int)(address & 3) * 8;
#pragma unroll
    for (int i = 0; i < 4 * kBlocks; i++) ((uint32_t *)x)[i] = __funnelshift_r(w[i], w[i + 1], shift);
  } else if constexpr (kBytes % 4 == 0 && sizeof(T) < 8) {
    const int ahead = (int)(address & 3), lo = begin * (int)sizeof(T) + ahead, hi = end * (int)sizeof(T) + ahead;
    const uint32_t *word = (const uint32_t *)(address & ~3ull);
    if (kBytes == 8 && (address & 7) == 0 && begin <= 0 && end >= V) {
      *(uint2 *)x = __ldg((const uint2 *)p);
    } else if (ahead == 0) {
#pragma unroll
      for (int i = 0; i < kBytes / 4; i++)
        if (4 * i < hi && 4 * i + 4 > lo) ((uint32_t *)x)[i] = __ldg(word + i);
    } else {
      uint32_t w[kBytes / 4 + 1];
#pragma unroll
      for (int i = 0; i <= kBytes / 4; i++)
        if (4 * i < hi && 4 * i + 4 > lo) w[i] = __ldg(word + i);
#pragma unroll
      for (int i = 0; i < kBytes / 4; i++) ((uint32_t *)x)[i] = __funnelshift_r(w[i], w[i + 1], ahead * 8);
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i >= begin && i < end) x[i] = load(p + i);
  }
}

// What a run's address must be a multiple of to be written at once.
template <class T, int V>
constexpr int alignment_of_run() {
  constexpr int kBytes = V * sizeof(T);
  return kBytes % 16 == 0 ? 16 : kBytes % 8 == 0 ? 8 : kBytes % 4 == 0 ? 4 : sizeof(T);
}

// Bytes [begin, end) of a block of 16, in elements of T.
template <class T>
DEVICE void store_part(unsigned char *p, uint4 block, int begin, int end) {
  const uint32_t w[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (4 * i >= begin && 4 * i + 4 <= end) ((uint32_t *)p)[i] = w[i];
  if constexpr (sizeof(T) < 4) {  // words that are cut
#pragma unroll
    for (int side = 0; side < 2; side++) {
      const int at = side ? end : begin, first = at & ~3;
      if (first == at || (side && first == (begin & ~3) && first != begin)) continue;
      const uint32_t word = first == 0 ? w[0] : first == 4 ? w[1] : first == 8 ? w[2] : w[3];
#pragma unroll
      for (int b = 0; b < 4; b += sizeof(T))
        if (first + b >= begin && first + b < end) {
          if constexpr (sizeof(T) == 1)
            p[first + b] = (unsigned char)(word >> 8 * b);
          else
            *(unsigned short *)(p + first + b) = (unsigned short)(word >> 8 * b);
        }
    }
  }
}

template <class T, int V>
DEVICE void store_run(T *p, const T (&x)[V], int begin, int end) {
  constexpr int kBytes = V * sizeof(T), kAlign = alignment_of_run<T, V>();
  const bool aligned = kAlign > (int)sizeof(T) && ((unsigned long long)p & (kAlign - 1)) == 0;
  if (aligned && begin <= 0 && end >= V) {
#pragma unroll
    for (int i = 0; i < kBytes / kAlign; i++) {
      if constexpr (kAlign == 16)
        ((uint4 *)p)[i] = ((const uint4 *)x)[i];
      else if constexpr (kAlign == 8)
        ((uint2 *)p)[i] = ((const uint2 *)x)[i];
      else
        ((uint32_t *)p)[i] = ((const uint32_t *)x)[i];
    }
    return;
  }
  if constexpr (kAlign == 16 && sizeof(T) < 8) {
    if (aligned) {
      const int lo = (begin < 0 ? 0 : begin) * (int)sizeof(T), hi = (end > V ? V : end) * (int)sizeof(T);
      const int first = lo / 16, last = (hi - 1) / 16;
      uint4 head = ((const uint4 *)x)[0], tail = head;
#pragma unroll
      for (int i = 0; i < kBytes / 16; i++) {
        const uint4 block = ((const uint4 *)x)[i];
        if (i == first) head = block;
        if (i == last) tail = block;
        if (i > first && i < last) ((uint4 *)p)[i] = block;
      }
      store_part<T>((unsigned char *)p + 16 * first, head, lo - 16 * first, last == first ? hi - 16 * first : 16);
      if (last != first) store_part<T>((unsigned char *)p + 16 * last, tail, 0, hi - 16 * last);
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
    const Tensor to = l.tensors[0][sample];
    const int64_t n = volume_of(to);
    Out *out = to.template as<Out>();
    const In *in = l.tensors[IN][sample].template as<In>();
    const int lead = (int)((unsigned long long)out / sizeof(Out) & (V - 1));  // elements before the first run begins
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
          load_run(x[k], in + e, e < 0 ? (int)-e : 0, rest < V ? (int)rest : V);
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
  // From the source of the row's column 0, from which on columns follow each other, or go back.
  DEVICE void read(In (&x)[P * CI], const Place<K> &from, const In *zero, bool backwards) const {
    const In *p = zero + (int64_t)(backwards ? -(first + P - 1) : first) * (K::kInterleaved ? CI : 1);
    const int lo = backwards ? P - end : begin, hi = backwards ? P - begin : end;
    if constexpr (K::kInterleaved) {
      load_run(x, p, lo * CI, hi * CI);
    } else {
#pragma unroll
      for (int c = 0; c < CI; c++) load_run(*(In(*)[P])(x + c * P), p + c * from.channel, lo, hi);
    }
  }
  // Takes what was read to the row that begins at `line`.
  DEVICE void write(const Chain &chain, const In (&x)[P * CI], const Place<To> &to, Out *line,
                    const Found<Chain::kSteps> &inside, bool backwards) const {
    Out y[P * CO] __attribute__((aligned(16)));
#pragma unroll
    for (int p = 0; p < P; p++) {
      In in[CI];
      Out pixel[CO];
#pragma unroll
      for (int c = 0; c < CI; c++) {
        const int ahead = K::kInterleaved ? p * CI + c : c * P + p;
        const int back = K::kInterleaved ? (P - 1 - p) * CI + c : c * P + P - 1 - p;
        in[c] = backwards ? x[back] : x[ahead];
      }
      chain.map(pixel, in, inside);
#pragma unroll
      for (int c = 0; c < CO; c++) y[To::kInterleaved ? p * CO + c : c * P + p] = pixel[c];
    }
    Out *const out = line + (int64_t)first * kStep;
    if constexpr (To::kInterleaved) {
      store_run(out, y, begin * CO, end * CO);
    } else {
#pragma unroll
      for (int c = 0; c < CO; c++) store_run(out + c * to.channel, *(const Out(*)[P])(y + c * P), begin, end);
    }
  }
};

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

// Chains over pixels of few channels: G neighbouring threads take a row of the last output, each of them runs of P
// pixels. Runs are aligned in the output, so that the first and the last of a row may be cut. U runs are read before
// the first is written.
template <class K, int IN, class Chain, int P, int G, int THREADS, int U>
DEVICE void run_rows(const Launch &l) {
  typedef typename Chain::Kind To;
  typedef typename To::T Out;
  typedef typename K::T In;
  constexpr int N = To::N, CO = To::C, CI = K::C, kRows = THREADS / G;
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
      Found<Chain::kSteps> found;
      const bool is_whole = is_stretch(chain, at, 0, columns - 1, found, step);
      const In *zero = from.at(at);
      for (int32_t j = threadIdx.x % G; j * P < columns + ahead; j += is_whole ? U * G : G) {
        if (!is_whole) {
          const Run<K, Chain, P> run(j, ahead, columns);
          if (!run.exists()) continue;
          place_of_row(at, row, extent);
          if (!is_stretch(chain, at, run.first + run.begin, run.first + run.end - 1, found, step)) {
            place_of_row(at, row, extent);
            at[N - 1] = run.first + run.begin;
            write_places<K, Chain>(chain, from, to, at, run.end - run.begin);
            continue;
          }
          at[N - 1] -= step * (run.first + run.begin);
          zero = from.at(at);
        }
        Found<Chain::kSteps> inside;  // the compiler sees that nothing is filled
#pragma unroll
        for (int i = 0; i <= Chain::kSteps; i++) inside.channel[i] = found.channel[i];
        In x[U][P * CI] __attribute__((aligned(16)));
#pragma unroll
        for (int k = 0; k < U; k++) {
          const Run<K, Chain, P> run(j + k * G, ahead, columns);
          if (run.exists() && (k == 0 || is_whole)) run.read(x[k], from, zero, step < 0);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
          const Run<K, Chain, P> run(j + k * G, ahead, columns);
          if (run.exists() && (k == 0 || is_whole)) run.write(chain, x[k], to, line, inside, step < 0);
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
      In x[U][P * CI] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const Run<K, Chain, P> run(first + k * THREADS, ahead, columns);
        if (run.exists()) run.read(x[k], from, from.data, false);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const Run<K, Chain, P> run(first + k * THREADS, ahead, columns);
        if (run.exists()) run.write(chain, x[k], to, line, inside, false);
      }
    }
  }
}
