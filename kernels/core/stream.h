// SPDX-License-Identifier: Apache-2.0
// Writes that bypass the caches, for batch outputs larger than these: memory is then not read before it is written,
// which saves a third of a copy's traffic.
#pragma once
#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/kernel.h"

// Copies around the caches. Threads that read `out` afterwards see it once this thread has called `end_of_stream`.
inline void stream_copy(void *out, const void *in, int64_t bytes) {
#if defined(__SSE2__)
  char *to = (char *)out;
  const char *from = (const char *)in;
  const int64_t head = std::min<int64_t>(-(uintptr_t)to & 63, bytes);
  std::memcpy(to, from, head);
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64)
    for (int k = 0; k < 64; k += 16)
      _mm_stream_si128((__m128i *)(to + i + k), _mm_loadu_si128((const __m128i *)(from + i + k)));
  std::memcpy(to + i, from + i, bytes - i);
#else
  std::memcpy(out, in, bytes);
#endif
}

inline void end_of_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// memcpy to an output.
inline void copy_out(void *out, const void *in, int64_t bytes, const Scratch &scratch) {
  if (scratch.is_output_large)
    stream_copy(out, in, bytes);
  else if (bytes)
    std::memcpy(out, in, bytes);
}

// Bytes made at a time before they are written. Small, so that reading continues meanwhile: with 4096 the processor
// alternates between reading and writing, at two thirds of the speed.
constexpr int64_t kStreamBlock = 512;

// Calls f(to, first, n), which writes the elements [first, first + n) of an output to `to`, block by block; the length
// of a block is a multiple of `unit` elements, which must fit in a block.
template <class T, class F>
inline void stream_blocks(T *out, int64_t n, int64_t unit, F f) {
  constexpr int64_t kBlock = kStreamBlock / (int64_t)sizeof(T);
  alignas(64) T block[kBlock];
  const int64_t step = kBlock / unit * unit;
  for (int64_t i = 0; i < n; i += step) {
    const int64_t m = std::min(step, n - i);
    f(block, i, m);
    stream_copy(out + i, block, m * sizeof(T));
  }
}

// Calls f once for all, or block by block if the output is large.
template <class T, class F>
inline void write_blocks(T *out, int64_t n, const Scratch &scratch, F f) {
  if (!scratch.is_output_large) return f(out, 0, n);
  stream_blocks(out, n, 1, f);
}
