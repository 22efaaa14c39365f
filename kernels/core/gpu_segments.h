// SPDX-License-Identifier: Apache-2.0
// Copies long pieces of memory between any addresses, by aligned blocks of 16 bytes of the target.
#pragma once
#include "core/gpu.h"

// 16 bytes from any address on, read as the aligned blocks that hold them and assembled later, so that many reads can
// be in flight.
struct Unaligned {
  uint4 low, high;
  // Block i behind the one that p points into, at offset `ahead`.
  DEVICE void read(const void *p, int32_t i, int ahead) {
    const uint4 *block = (const uint4 *)((unsigned long long)p & ~15ull) + i;
    low = __ldg(block);
    if (ahead) high = __ldg(block + 1);
  }
  DEVICE uint4 get(int ahead) const {
    if (ahead == 0) return low;
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = ahead & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = ahead & 4 ? w[i + 1] : w[i];
    const int shift = (ahead & 3) * 8;
    return {__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift), __funnelshift_r(w[2], w[3], shift),
            __funnelshift_r(w[3], w[4], shift)};
  }
};

// Elements that are contiguous in both places.
template <class T>
struct Segment {
  T *to;
  const T *from;
  uint32_t n;
};

// Copies segments 0, 1, .., each of at most `longest` elements, as returned by find(i). G neighbouring threads take
// PIECE blocks of a segment, aligned in the target; each thread reads U before it writes the first. Elements in cut
// first and last blocks are copied one by one by the threads that take the segment's first piece.
template <class T, int G, int THREADS, int U, int PIECE, class Find>
DEVICE void copy_segments(uint32_t n_segments, uint32_t longest, const Find &find) {
  constexpr int E = 16 / sizeof(T), kTogether = THREADS / G, kEdges = (2 * E + G - 1) / G;
  const uint32_t lane = threadIdx.x % G;
  const uint32_t pieces = longest / E / PIECE + 1, n_items = n_segments * pieces;
  for (uint32_t item = blockIdx.x * kTogether + threadIdx.x / G; item < n_items; item += gridDim.x * kTogether) {
    const uint32_t i = pieces == 1 ? item : item / pieces, piece = item - i * pieces;
    const Segment<T> s = find(i);
    const uint32_t lead = (uint32_t)((unsigned long long)s.to / sizeof(T)) & (E - 1);  // elements of block 0 before it
    const uint32_t n_blocks = s.n ? (s.n + lead + E - 1) / E : 0;
    if (piece * PIECE >= n_blocks) continue;
    const uint32_t first = lead ? 1 : 0, last = (s.n + lead) / E;  // the whole blocks

    T edge[kEdges];
    uint32_t place[kEdges];  // element number; s.n if none
#pragma unroll
    for (int m = 0; m < kEdges; m++) {
      const uint32_t k = lane + m * G, head = first * (E - lead), tail = (last > first ? last : first) * E - lead;
      const uint32_t at = k < E ? (k < head ? k : s.n) : tail + (k - E);
      place[m] = piece == 0 && k < 2 * E && at < s.n ? at : s.n;
      if (place[m] < s.n) edge[m] = load(s.from + place[m]);
    }

    const void *const source = s.from - lead;
    const int ahead = (int)((unsigned long long)source & 15);
    const uint32_t end = last < (piece + 1) * PIECE ? last : (piece + 1) * PIECE;
    uint4 *const to = (uint4 *)(s.to - lead);
    for (uint32_t j = piece * PIECE + lane; j < end; j += U * G) {
      Unaligned x[U];
#pragma unroll
      for (int k = 0; k < U; k++)
        if (j + k * G < end && j + k * G >= first) x[k].read(source, j + k * G, ahead);
#pragma unroll
      for (int k = 0; k < U; k++)
        if (j + k * G < end && j + k * G >= first) to[j + k * G] = x[k].get(ahead);
    }
#pragma unroll
    for (int m = 0; m < kEdges; m++)
      if (place[m] < s.n) s.to[place[m]] = edge[m];
  }
}
