// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_runs.h"
#include "core/gpu_segments.h"
#include "core/gpu_units.h"
#include "generic/cat.h"

// Addresses of the inputs, and the end of each input's piece in a row of pieces, in units of U.
template <class U, int K>
struct CatPlaces {
  const U *from[K];
  uint32_t end[K], row;

  DEVICE CatPlaces(const Launch &l, int sample, const CatArgs &a) : row(0) {
#pragma unroll
    for (int k = 0; k < K; k++) {
      const Tensor t = l.tensors[1 + k][sample];
      from[k] = (const U *)t.data;
      row += (uint32_t)(cat_piece(t, a.axis) / (int64_t)sizeof(U));
      end[k] = row;
    }
  }
};

// Copies element by element.
template <class U, int K>
DEVICE void cat_elements(U *to, const CatPlaces<U, K> &at, uint32_t begin, uint32_t end, uint32_t thread, uint32_t of) {
  for (uint32_t i = begin + thread; i < end; i += of) {
    const uint32_t piece = i / at.row, column = i - piece * at.row;
    uint32_t first = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (column >= first && column < at.end[k])
        to[i] = unit_at<U>(at.from[k], (int64_t)piece * (at.end[k] - first) + column - first);
      first = at.end[k];
    }
  }
}

template <class U, int K>
DEVICE void cat_sample(const Launch &l, int sample, const CatArgs &a) {
  const Tensor out = l.tensors[0][sample];
  const uint32_t total = (uint32_t)(cat_piece(out, 0) / sizeof(U));
  if (!total) return;
  cat_elements<U, K>((U *)out.data, CatPlaces<U, K>(l, sample, a), 0, total, blockIdx.x * blockDim.x + threadIdx.x,
                     gridDim.x * blockDim.x);
}

// Short pieces of any size. BYTES divides all pieces. External memory may have any alignment: if it is not aligned to
// BYTES, elements of SIZE bytes are copied.
template <int BYTES, int SIZE, int K>
DEVICE void cat_all(const Launch &l) {
  typedef typename UnitOf<BYTES>::type U;
  FOR_SAMPLES(sample, l) {
    const CatArgs a = ((const CatArgs *)l.args[0])[sample];
    bool aligned = is_aligned<U>(l.tensors[0][sample].data);
#pragma unroll
    for (int k = 0; k < K; k++) aligned = aligned && is_aligned<U>(l.tensors[1 + k][sample].data);
    if (aligned)
      cat_sample<U, K>(l, sample, a);
    else
      cat_sample<typename UnitOf<SIZE>::type, K>(l, sample, a);
  }
}

// Long pieces.
template <class T, int K, int G, int THREADS, int U, int PIECE>
DEVICE void cat_segments(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const CatArgs a = ((const CatArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const uint32_t total = (uint32_t)(cat_piece(out, 0) / (int64_t)sizeof(T));
    if (!total) continue;
    const CatPlaces<T, K> at(l, sample, a);
    uint32_t longest = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      const uint32_t n = at.end[k] - (k ? at.end[k - 1] : 0);
      longest = n > longest ? n : longest;
    }
    copy_segments<T, G, THREADS, U, PIECE>(total / at.row * K, longest, [&](uint32_t i) {
      const uint32_t piece = i / K, which = i - piece * K;
      Segment<T> s = {(T *)out.data + (int64_t)piece * at.row, at.from[0], at.end[0]};
#pragma unroll
      for (int k = 1; k < K; k++)
        if (which == k) {
          s.to += at.end[k - 1], s.n = at.end[k] - at.end[k - 1];
          s.from = at.from[k];
        }
      s.from += (int64_t)piece * s.n;
      return s;
    });
  }
}

// V consecutive pieces of each input. Pieces of the first input have P elements, which begin at element AT of a row of
// ROW elements.
template <class T, int V, int ROW, int AT, int... PIECES>
struct Interleaved {
  DEVICE void read(const T *const *, int64_t) {}
  DEVICE void put(T (&)[V * ROW], const T *const *, int64_t) {}
};
template <class T, int V, int ROW, int AT, int P, int... REST>
struct Interleaved<T, V, ROW, AT, P, REST...> {
  UnalignedRun<T, V * P> run;
  Interleaved<T, V, ROW, AT + P, REST...> rest;

  DEVICE void read(const T *const *from, int64_t piece) {
    run.read(*from + piece * P, 0, V * P);
    rest.read(from + 1, piece);
  }
  DEVICE void put(T (&row)[V * ROW], const T *const *from, int64_t piece) {
    T x[V * P];
    run.get(x, *from + piece * P);
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
      for (int i = 0; i < P; i++) row[v * ROW + AT + i] = x[v * P + i];
    }
    rest.put(row, from + 1, piece);
  }
};

// Short pieces of PIECES elements each. A thread makes V rows, U times.
template <class T, int U, int V, int... PIECES>
DEVICE void cat_interleaved(const Launch &l) {
  constexpr int K = sizeof...(PIECES), kRow = (PIECES + ...), kRun = V * kRow;
  constexpr uint32_t E = alignment_of_run<T, kRun>() / sizeof(T);
  FOR_SAMPLES(sample, l) {
    const CatArgs a = ((const CatArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const uint32_t rows = (uint32_t)(cat_piece(out, 0) / (int64_t)sizeof(T)) / kRow;
    if (!rows) continue;
    T *const to = out.template as<T>();
    const CatPlaces<T, K> at(l, sample, a);
    // Whole runs begin with the first row that has their alignment, if there is one.
    const uint32_t first = (uint32_t)((unsigned long long)to / sizeof(T));
    uint32_t lead = 0;
    while (lead < V && ((first + lead * kRow) & (E - 1))) lead++;
    lead = lead == V ? 0 : lead < rows ? lead : rows;
    const uint32_t n_runs = (rows - lead) / V, step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x * U + threadIdx.x; i < n_runs; i += step * U) {
      Interleaved<T, V, kRow, 0, PIECES...> x[U];
#pragma unroll
      for (int k = 0; k < U; k++)
        if (i + k * blockDim.x < n_runs) x[k].read(at.from, lead + (int64_t)(i + k * blockDim.x) * V);
#pragma unroll
      for (int k = 0; k < U; k++) {
        if (i + k * blockDim.x >= n_runs) continue;
        const int64_t row = lead + (int64_t)(i + k * blockDim.x) * V;
        T y[kRun] __attribute__((aligned(16)));
        x[k].put(y, at.from, row);
        store_run<T, kRun>(to + row * kRow, y, 0, kRun);
      }
    }
    if (blockIdx.x) continue;
    cat_elements<T, K>(to, at, 0, lead * kRow, threadIdx.x, blockDim.x);
    cat_elements<T, K>(to, at, (lead + n_runs * V) * kRow, rows * kRow, threadIdx.x, blockDim.x);
  }
}
