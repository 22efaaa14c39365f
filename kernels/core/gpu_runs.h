// SPDX-License-Identifier: Apache-2.0
// Launches that read and write runs of neighbours, 16 bytes and more at a time.
#pragma once
#include "core/gpu_local.h"

// The alignment in bytes that a run's address needs to be written at once.
template <class T, int V>
constexpr int alignment_of_run() {
  constexpr int kBytes = V * sizeof(T);
  return kBytes % 16 == 0 ? 16 : kBytes % 8 == 0 ? 8 : kBytes % 4 == 0 ? 4 : sizeof(T);
}

// Loads V elements from an aligned address.
template <class T, int V>
DEVICE void load_aligned(T (&x)[V], const T *p) {
  constexpr int kAlign = alignment_of_run<T, V>(), kUnits = V * sizeof(T) / kAlign;
#pragma unroll
  for (int i = 0; i < kUnits; i++) {
    if constexpr (kAlign == 16)
      ((uint4 *)x)[i] = __ldg((const uint4 *)p + i);
    else if constexpr (kAlign == 8)
      ((uint2 *)x)[i] = __ldg((const uint2 *)p + i);
    else if constexpr (kAlign == 4)
      ((uint32_t *)x)[i] = __ldg((const uint32_t *)p + i);
    else
      x[i] = load(p + i);
  }
}
template <class T, int V>
DEVICE void store_aligned(T *p, const T (&x)[V]) {
  constexpr int kAlign = alignment_of_run<T, V>(), kUnits = V * sizeof(T) / kAlign;
#pragma unroll
  for (int i = 0; i < kUnits; i++) {
    if constexpr (kAlign == 16)
      ((uint4 *)p)[i] = ((const uint4 *)x)[i];
    else if constexpr (kAlign == 8)
      ((uint2 *)p)[i] = ((const uint2 *)x)[i];
    else if constexpr (kAlign == 4)
      ((uint32_t *)p)[i] = ((const uint32_t *)x)[i];
    else
      p[i] = x[i];
  }
}

// A run of V elements as it lies in memory: read first and assembled later, so that many reads can be in flight.
// p[begin..end) exist. Blocks of 16 bytes (words for short runs) that hold one of them are read as a whole: allocations
// begin and end at multiples of 16.
template <class T, int V>
struct UnalignedRun {
  static constexpr int kBytes = V * sizeof(T);
  static constexpr bool kByBlocks = kBytes % 16 == 0 && sizeof(T) < 8;
  static constexpr bool kByWords = !kByBlocks && kBytes % 4 == 0 && sizeof(T) < 8;
  static constexpr int kWords = kBytes / 4 + (kByBlocks ? 4 : 1);
  union {
    uint32_t w[kWords] __attribute__((aligned(16)));
    uint4 blocks[kByBlocks ? kWords / 4 : 1];
  };

  DEVICE void read(const T *p, int begin, int end) {
    const unsigned long long address = (unsigned long long)p;
    if constexpr (kByBlocks) {
      const uint4 *block = (const uint4 *)(address & ~15ull);
      const int ahead = (int)(address & 15), lo = begin * (int)sizeof(T) + ahead, hi = end * (int)sizeof(T) + ahead;
#pragma unroll
      for (int i = 0; i < kWords / 4; i++)
        if (16 * i < hi && 16 * i + 16 > lo) blocks[i] = __ldg(block + i);
    } else if constexpr (kByWords) {
      const uint32_t *word = (const uint32_t *)(address & ~3ull);
      const int ahead = (int)(address & 3), lo = begin * (int)sizeof(T) + ahead, hi = end * (int)sizeof(T) + ahead;
#pragma unroll
      for (int i = 0; i < kWords; i++)
        if (4 * i < hi && 4 * i + 4 > lo) w[i] = __ldg(word + i);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i >= begin && i < end) ((T *)w)[i] = load(p + i);
    }
  }
  // The same for a run that exists entirely.
  DEVICE void read(const T *p, bool is_aligned) {
    if (is_aligned)
      load_aligned(*(T(*)[V])w, p);
    else
      read(p, 0, V);
  }
  // Extracts the elements from p on, the address of `read`.
  DEVICE void get(T (&x)[V], const T *p) {
    const int ahead = (int)((unsigned long long)p & (kByBlocks ? 15 : 3));
    if constexpr (kByBlocks) {
      if (ahead & 8) {
#pragma unroll
        for (int i = 0; i < kWords - 2; i++) w[i] = w[i + 2];
      }
      if (ahead & 4) {
#pragma unroll
        for (int i = 0; i < kWords - 1; i++) w[i] = w[i + 1];
      }
    }
    if constexpr ((kByBlocks || kByWords) && sizeof(T) < 4) {
      if (ahead & 3) {
#pragma unroll
        for (int i = 0; i < kBytes / 4; i++) w[i] = __funnelshift_r(w[i], w[i + 1], (ahead & 3) * 8);
      }
    }
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = ((const T *)w)[i];
  }
};

// Both in one step: for runs that are mostly aligned.
template <class T, int V>
DEVICE void load_run(T (&x)[V], const T *p, int begin, int end) {
  constexpr int kBytes = V * sizeof(T);
  constexpr int kUnit = sizeof(T) == 8 ? 0 : kBytes % 16 == 0 ? 16 : kBytes == 8 ? 8 : 0;
  if constexpr (kUnit == 16) {
    if (((unsigned long long)p & 15) == 0) {
#pragma unroll
      for (int i = 0; i < kBytes / 16; i++)
        if (16 * i < end * (int)sizeof(T) && 16 * i + 16 > begin * (int)sizeof(T))
          ((uint4 *)x)[i] = __ldg((const uint4 *)p + i);
      return;
    }
  } else if constexpr (kUnit == 8) {
    if (((unsigned long long)p & 7) == 0 && begin <= 0 && end >= V) {
      *(uint2 *)x = __ldg((const uint2 *)p);
      return;
    }
  }
  UnalignedRun<T, V> run;
  run.read(p, begin, end);
  run.get(x, p);
}

// Bytes [begin, end) of a block of 16, in elements of T.
template <class T>
DEVICE void store_part(unsigned char *p, uint4 block, int begin, int end) {
  const uint32_t w[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (4 * i >= begin && 4 * i + 4 <= end) ((uint32_t *)p)[i] = w[i];
  if constexpr (sizeof(T) < 4) {  // partial words
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
    store_aligned(p, x);
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

// Chains of values: a run of V elements takes the place of a pixel. Runs are aligned in the output; the first and last
// may be cut and are handled apart, so that the others need no checks.
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
    const int64_t n_runs = (n + lead + V - 1) / V, whole = (n + lead) / V;    // `whole` includes the first
    int64_t first = (int64_t)blockIdx.x * (THREADS * U) + threadIdx.x;
    if (first >= n_runs || n == 0) continue;
    Chain chain;
    chain.begin(l, sample);
    const Found<Chain::kSteps> found;
    in -= lead, out -= lead;
    const bool is_aligned = ((unsigned long long)in & (alignment_of_run<In, V>() - 1)) == 0;
    for (; first < n_runs; first += (int64_t)gridDim.x * (THREADS * U)) {
      In x[U][V] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * THREADS;
        if (i >= whole || (i == 0 && lead)) continue;
        if (is_aligned)
          load_aligned(x[k], in + i * V);
        else
          load_run(x[k], in + i * V, 0, V);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * THREADS;
        if (i >= whole || (i == 0 && lead)) continue;
        Out y[V] __attribute__((aligned(16)));
        chain.map(y, x[k], found);
        store_aligned(out + i * V, y);
      }
    }
    // Thread 0 takes the first run if it is cut, thread 1 the last.
    const int64_t cut = threadIdx.x == 0 ? 0 : n_runs - 1;
    const bool is_first = threadIdx.x == 0 && (lead || whole == 0), is_last = threadIdx.x == 1 && whole < n_runs;
    if (blockIdx.x == 0 && (is_first || is_last)) {
      const int begin = cut ? 0 : lead, end = n + lead - cut * V < V ? (int)(n + lead - cut * V) : V;
      In x[V];
      Out y[V];
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i >= begin && i < end) x[i] = load(in + cut * V + i);
      chain.map(y, x, found);
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i >= begin && i < end) out[cut * V + i] = y[i];
    }
  }
}
