// SPDX-License-Identifier: Apache-2.0
#include "filter/equalize.h"

#include "core/kernel.h"
#include "filter/histogram.h"

// Makes the table of a channel from its histogram.
static void make_table(uint8_t *table, const uint32_t *counts, int64_t pixels) {
  int first = 0;
  while (first < 255 && !counts[first]) first++;
  memset(table, 0, 256);
  if (counts[first] == pixels) {  // a single value is kept
    table[first] = (uint8_t)first;
    return;
  }
  const float scale = 255.0f / (float)(pixels - counts[first]);
  int32_t below = 0;
  for (int v = first + 1; v < 256; v++) {
    below += (int32_t)counts[v];
    table[v] = equalized(below, scale);
  }
}

template <int C>
static void equalize(uint8_t *out, const uint8_t *in, int64_t pixels) {
  uint32_t counts[C * 256];
  uint8_t tables[C * 256];
  count_bytes<C>(in, pixels, counts);
  for (int c = 0; c < C; c++) make_table(tables + c * 256, counts + c * 256, pixels);
  apply_tables<C>(out, in, pixels, tables);
}

// For any number of interleaved channels.
static void equalize_many(uint8_t *out, const uint8_t *in, const ByteImage &x, Scratch &scratch) {
  const int64_t n = x.channels;
  uint32_t *counts = scratch.array<uint32_t>(n * 256, 0);
  uint8_t *tables = scratch.array<uint8_t>(n * 256, 1);
  memset(counts, 0, n * 256 * sizeof *counts);
  for (int64_t i = 0; i < x.pixels; i++)
    for (int64_t c = 0; c < n; c++) counts[c * 256 + in[i * n + c]]++;
  for (int64_t c = 0; c < n; c++) make_table(tables + c * 256, counts + c * 256, x.pixels);
  for (int64_t i = 0; i < x.pixels; i++)
    for (int64_t c = 0; c < n; c++) out[i * n + c] = tables[c * 256 + in[i * n + c]];
}

static void run(const Tensor *out, const Tensor *in, const EqualizeArgs &a, Scratch &scratch) {
  const ByteImage x(*in, a.axis);
  if (in->volume() == 0) return;
  for (int64_t p = 0; p < x.planes; p++) {
    uint8_t *to = out->as<uint8_t>() + p * x.pixels * x.channels;
    const uint8_t *from = in->as<uint8_t>() + p * x.pixels * x.channels;
    switch (x.channels) {
      case 1:
        equalize<1>(to, from, x.pixels);
        break;
      case 3:
        equalize<3>(to, from, x.pixels);
        break;
      case 4:
        equalize<4>(to, from, x.pixels);
        break;
      default:
        equalize_many(to, from, x, scratch);
    }
  }
}

EXPORT_KERNEL(equalize, EqualizeArgs, run)
