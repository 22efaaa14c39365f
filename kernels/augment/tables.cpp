// SPDX-License-Identifier: Apache-2.0
#include "augment/tables.h"

#include <algorithm>
#include <cstring>

#include "color/look_up.h"

namespace {

constexpr int kLanes = 192;  // a multiple of 64 and of the usual numbers of channels

// Sums over the blocks: sums[i] is the sum of value i of each block of kLanes values.
CLONES void sum_lanes(uint32_t *__restrict sums, const uint8_t *__restrict in, int64_t n_blocks) {
  uint32_t s[kLanes] = {};
  for (int64_t b = 0; b < n_blocks; b++, in += kLanes)
    for (int i = 0; i < kLanes; i++) s[i] += in[i];
  memcpy(sums, s, sizeof s);
}

CLONES void range_lanes(uint8_t *__restrict lo, uint8_t *__restrict hi, const uint8_t *__restrict in,
                        int64_t n_blocks) {
  uint8_t a[kLanes], b[kLanes];
  memset(a, 255, sizeof a);
  memset(b, 0, sizeof b);
  for (int64_t k = 0; k < n_blocks; k++, in += kLanes) {
    for (int i = 0; i < kLanes; i++) a[i] = a[i] < in[i] ? a[i] : in[i];
    for (int i = 0; i < kLanes; i++) b[i] = b[i] > in[i] ? b[i] : in[i];
  }
  memcpy(lo, a, sizeof a);
  memcpy(hi, b, sizeof b);
}

// The number of blocks of kLanes values. 0 if kLanes is not a multiple of `channels`, as blocks must begin with channel
// 0.
int64_t blocks_of(int64_t n, int channels) { return kLanes % channels ? 0 : n / kLanes; }

template <int CHANNELS>
void count(uint32_t *counts, const uint8_t *in, int64_t n_pixels, int channels) {
  const int c_n = CHANNELS ? CHANNELS : channels;
  const int64_t size = 256 * c_n;
  int64_t p = 0;
  for (; p + Histograms::kParts <= n_pixels; p += Histograms::kParts)
    for (int part = 0; part < Histograms::kParts; part++)
      for (int c = 0; c < c_n; c++) counts[part * size + 256 * c + *in++]++;
  for (; p < n_pixels; p++)
    for (int c = 0; c < c_n; c++) counts[256 * c + *in++]++;
}

void equalize(uint8_t *table, const uint32_t *counts, int64_t n_pixels) {
  int first = 0;
  while (first < 255 && !counts[first]) first++;
  memset(table, 0, 256);
  if (counts[first] == n_pixels) {
    memset(table, first, 256);
    return;
  }
  const float scale = 255.0f / (float)(n_pixels - counts[first]);
  uint32_t below = 0;
  for (int v = first + 1; v < 256; v++) table[v] = augment_spread(below += counts[v], scale);
}

#if defined(__x86_64__) && defined(__linux__)
// Look-up in one table per channel for 3 channels. Part p of 192 bytes begins with channel p; 64 % 3 is 1.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) int64_t look_up_three(uint8_t *out, const uint8_t *in, int64_t n,
                                                                             const uint8_t *tables) {
  __m512i t[12];
  for (int i = 0; i < 12; i++) t[i] = _mm512_loadu_si512(tables + 64 * i);
  const uint64_t every = 0x9249249249249249ull;  // bytes 0, 3, 6 .. 63
  int64_t i = 0;
  for (; i + 192 <= n; i += 192) {
    for (int part = 0; part < 3; part++) {
      const __m512i x = _mm512_loadu_si512(in + i + 64 * part);
      const __mmask64 upper = _mm512_movepi8_mask(x);
      __m512i y = x;
      for (int c = 0; c < 3; c++) {
        const int shift = (c + 3 - part) % 3;  // index of the first byte of channel c
        const uint64_t mask = shift == 0 ? every : shift == 1 ? every << 1 : every << 2;
        const __m512i low = _mm512_permutex2var_epi8(t[4 * c], x, t[4 * c + 1]);
        const __m512i high = _mm512_permutex2var_epi8(t[4 * c + 2], x, t[4 * c + 3]);
        y = _mm512_mask_mov_epi8(y, mask & ~upper, low);
        y = _mm512_mask_mov_epi8(y, mask & upper, high);
      }
      _mm512_storeu_si512(out + i + 64 * part, y);
    }
  }
  return i;
}
#else
int64_t look_up_three(uint8_t *, const uint8_t *, int64_t, const uint8_t *) { return 0; }
#endif

}  // namespace

void sum_channels(int64_t *sums, const uint8_t *in, int64_t n_pixels, int channels) {
  const int64_t n = n_pixels * channels, most = 1 << 24;  // most blocks whose sums fit in 32 bits
  std::fill(sums, sums + channels, 0);
  int64_t blocks = blocks_of(n, channels), i = blocks * kLanes;
  for (const uint8_t *p = in; blocks > 0; blocks -= most, p += most * kLanes) {
    uint32_t lanes[kLanes];
    sum_lanes(lanes, p, std::min(blocks, most));
    for (int k = 0; k < kLanes; k++) sums[k % channels] += lanes[k];
  }
  for (; i < n; i++) sums[i % channels] += in[i];
}

void make_tables(uint8_t *tables, int kind, const uint8_t *in, int64_t n_pixels, int channels, Histograms &h) {
  const int64_t n = n_pixels * channels;
  if (kind == AUGMENT_AUTO_CONTRAST) {
    uint8_t *lo = (uint8_t *)h.counts, *hi = lo + channels, a[kLanes], b[kLanes];
    memset(lo, 255, channels);
    memset(hi, 0, channels);
    const int64_t blocks = blocks_of(n, channels);
    if (blocks) range_lanes(a, b, in, blocks);
    for (int k = 0; blocks && k < kLanes; k++)
      lo[k % channels] = std::min(lo[k % channels], a[k]), hi[k % channels] = std::max(hi[k % channels], b[k]);
    for (int64_t i = blocks * kLanes; i < n; i++)
      lo[i % channels] = std::min(lo[i % channels], in[i]), hi[i % channels] = std::max(hi[i % channels], in[i]);
    for (int c = 0; c < channels; c++)
      for (int v = 0; v < 256; v++) tables[256 * c + v] = augment_stretch(lo[c], hi[c], std::max(v, (int)lo[c]));
    return;
  }
  const int64_t size = 256 * channels;
  std::fill(h.counts, h.counts + Histograms::kParts * size, 0);
  if (channels == 3)
    count<3>(h.counts, in, n_pixels, 3);
  else if (channels == 1)
    count<1>(h.counts, in, n_pixels, 1);
  else
    count<0>(h.counts, in, n_pixels, channels);
  for (int part = 1; part < Histograms::kParts; part++)
    for (int64_t i = 0; i < size; i++) h.counts[i] += h.counts[part * size + i];
  for (int c = 0; c < channels; c++) equalize(tables + 256 * c, h.of(c), n_pixels);
}

void apply_table(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *table) {
  if (can_look_up()) return look_up(out, in, n, table);
  for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];
}

void apply_tables(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *tables, int channels) {
  if (channels == 1) return apply_table(out, in, n, tables);
  int64_t i = channels == 3 && can_permute() ? look_up_three(out, in, n, tables) : 0;
  for (int c = 0; i < n; i++, c = c + 1 == channels ? 0 : c + 1) out[i] = tables[256 * c + in[i]];
}
