// SPDX-License-Identifier: Apache-2.0
// Histograms of bytes, and tables per channel applied to bytes.
#pragma once
#include <cstdint>
#include <cstring>

#include "color/look_up.h"

// Counts the values of n pixels of C channels, to counts[C][256]. Neighbours have different counters, as incrementing
// the same one again would wait for several cycles.
template <int C>
inline void count_bytes(const uint8_t *in, int64_t n, uint32_t *counts) {
  constexpr int kCopies = C == 1 ? 4 : 2;
  uint32_t copies[kCopies][C * 256];
  memset(copies, 0, sizeof copies);
  int64_t i = 0;
  for (; i + kCopies <= n; i += kCopies)
    for (int k = 0; k < kCopies; k++)
      for (int c = 0; c < C; c++) copies[k][c * 256 + *in++]++;
  for (; i < n; i++)
    for (int c = 0; c < C; c++) copies[0][c * 256 + *in++]++;
  for (int v = 0; v < C * 256; v++) {
    counts[v] = copies[0][v];
    for (int k = 1; k < kCopies; k++) counts[v] += copies[k][v];
  }
}

#if defined(__x86_64__) && defined(__linux__)
// As `look_up`, with a table for each of C interleaved channels.
template <int C>
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline void look_up_channels(uint8_t *out, const uint8_t *in,
                                                                                    int64_t n, const uint8_t *tables) {
  constexpr int kPhases = C == 3 ? 3 : 1;
  __m512i t[C][4];
  __mmask64 of[kPhases][C];
  for (int c = 0; c < C; c++)
    for (int q = 0; q < 4; q++) t[c][q] = _mm512_loadu_si512(tables + c * 256 + q * 64);
  for (int p = 0; p < kPhases; p++)
    for (int c = 0; c < C; c++) {
      uint64_t bits = 0;
      for (int i = 0; i < 64; i++) bits |= (uint64_t)((p * 64 + i) % C == c) << i;
      of[p][c] = bits;
    }
  const int64_t bytes = n * C;
  int64_t i = 0;
  for (; i + kPhases * 64 <= bytes; i += kPhases * 64)
    for (int p = 0; p < kPhases; p++) {
      const __m512i x = _mm512_loadu_si512(in + i + p * 64);
      const __mmask64 high = _mm512_movepi8_mask(x);
      __m512i y = _mm512_setzero_si512();
      for (int c = 0; c < C; c++) {
        const __m512i a = _mm512_permutex2var_epi8(t[c][0], x, t[c][1]);
        const __m512i b = _mm512_permutex2var_epi8(t[c][2], x, t[c][3]);
        y = _mm512_mask_mov_epi8(y, of[p][c], _mm512_mask_mov_epi8(a, high, b));
      }
      _mm512_storeu_si512(out + i + p * 64, y);
    }
  for (; i < bytes; i++) out[i] = tables[i % C * 256 + in[i]];
}
#endif

// out = tables[channel][in] for n pixels.
template <int C>
inline void apply_tables(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *tables) {
  if constexpr (C == 1) {
    if (can_look_up()) return look_up(out, in, n, tables);
#if defined(__x86_64__) && defined(__linux__)
  } else {
    if (can_permute()) return look_up_channels<C>(out, in, n, tables);
#endif
  }
  for (int64_t i = 0; i < n; i++)
    for (int c = 0; c < C; c++) out[i * C + c] = tables[c * 256 + in[i * C + c]];
}
