// SPDX-License-Identifier: Apache-2.0
#include "filter/clahe.h"

#include <algorithm>
#include <cstring>

#include "color/look_up.h"
#include "core/kernel.h"
#include "filter/lab_rows.h"

static void count_tile(int32_t *counts, const uint8_t *in, const ClaheTiles &t, int64_t row, int64_t column) {
  int32_t copies[2][256] = {};
  const int64_t left = column * t.tile_w, inside = std::clamp<int64_t>(t.w - left, 0, t.tile_w);
  for (int64_t y = row * t.tile_h; y < (row + 1) * t.tile_h; y++) {
    const uint8_t *x = in + border_place(y, t.h, REFLECT_101) * t.w;
    int64_t i = 0;
    for (; i + 2 <= inside; i += 2) copies[0][x[left + i]]++, copies[1][x[left + i + 1]]++;
    for (; i < inside; i++) copies[0][x[left + i]]++;
    for (; i < t.tile_w; i++) copies[1][x[border_place(left + i, t.w, REFLECT_101)]]++;
  }
  for (int i = 0; i < 256; i++) counts[i] = copies[0][i] + copies[1][i];
}

static void make_table(uint8_t *table, int32_t *counts, const ClaheTiles &t) {
  int32_t cut = 0;
  for (int i = 0; i < 256; i++) {
    const int32_t over = counts[i] > t.limit ? counts[i] - t.limit : 0;
    counts[i] -= over;
    cut += over;
  }
  const ClaheShare share(cut);
  int32_t sum = 0;
  for (int i = 0; i < 256; i++) {
    sum += counts[i] + share.of(i);
    table[i] = clahe_entry(sum, t.scale);
  }
}

// Per column, the same for all rows: the tiles around it and the weight of the second.
struct Columns {
  int64_t n_runs;
  int64_t *ends, *low, *high;  // runs of columns between the same two tiles
  float *weight;
};

static Columns columns_of(const ClaheTiles &t, Scratch &scratch) {
  Columns c;
  int64_t *runs = scratch.array<int64_t>(3 * (t.across + 1) + (t.w + 1) / 2 + 1, 1);
  c.n_runs = 0, c.ends = runs, c.low = runs + t.across + 1, c.high = c.low + t.across + 1;
  c.weight = (float *)(c.high + t.across + 1);
  for (int64_t x = 0; x < t.w; x++) {
    const ClahePlace at(x, 1.0f / (float)t.tile_w, t.across);
    const bool same = c.n_runs && c.low[c.n_runs - 1] == at.low && c.high[c.n_runs - 1] == at.high;
    if (!same) c.low[c.n_runs] = at.low, c.high[c.n_runs++] = at.high;
    c.ends[c.n_runs - 1] = x + 1;
    c.weight[x] = at.weight;
  }
  return c;
}

CLONES static void mix(uint8_t *__restrict out, const uint8_t *__restrict near, int64_t n,
                       const float *__restrict weight, float weight_y) {
  const uint8_t *a = near, *b = near + n, *c = near + 2 * n, *d = near + 3 * n;
  for (int64_t i = 0; i < n; i++) out[i] = clahe_mix(a[i], b[i], c[i], d[i], weight[i], weight_y);
}

static void look_up_run(uint8_t *to, const uint8_t *from, int64_t n, const uint8_t *table) {
  if (can_look_up()) return look_up(to, from, n, table);
  for (int64_t i = 0; i < n; i++) to[i] = table[from[i]];
}

// Equalizes a plane; `out` may be `in`.
static void equalize(uint8_t *out, const uint8_t *in, int64_t h, int64_t w, const ClaheArgs &a, Scratch &scratch) {
  const ClaheTiles t(h, w, a);
  const int64_t n_tables = t.down * t.across * 256;
  uint8_t *tables = scratch.array<uint8_t>(n_tables + 4 * w, 0), *near = tables + n_tables;
  int32_t counts[256];
  for (int64_t j = 0; j < t.down; j++)
    for (int64_t i = 0; i < t.across; i++) {
      count_tile(counts, in, t, j, i);
      make_table(tables + (j * t.across + i) * 256, counts, t);
    }
  const Columns columns = columns_of(t, scratch);
  for (int64_t y = 0; y < h; y++) {
    const ClahePlace at(y, 1.0f / (float)t.tile_h, t.down);
    const uint8_t *row = in + y * w;
    for (int64_t r = 0, x = 0; r < columns.n_runs; x = columns.ends[r++])
      for (int q = 0; q < 4; q++) {
        const int64_t tile = (q < 2 ? at.low : at.high) * t.across + (q % 2 ? columns.high[r] : columns.low[r]);
        look_up_run(near + q * w + x, row + x, columns.ends[r] - x, tables + tile * 256);
      }
    mix(out + y * w, near, w, columns.weight, at.weight);
  }
}

static void run(const Tensor *out, const Tensor *in, const ClaheArgs &a, Scratch &scratch) {
  const int64_t h = in->shape[0], w = in->shape[1], c = in->shape[2], n = h * w;
  if (in->volume() == 0) return;
  uint8_t *to = out->as<uint8_t>();
  const uint8_t *from = in->as<uint8_t>();
  if (c == 1) return equalize(to, from, h, w, a, scratch);
  uint8_t *planes = scratch.array<uint8_t>(3 * n, 2);
  if (a.luma) {
    rgb_to_lab(planes, planes + n, planes + 2 * n, from, n, a.tables, a.forward);
    equalize(planes, planes, h, w, a, scratch);
    lab_to_rgb(to, planes, planes + n, planes + 2 * n, n, a.tables, a.backward);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) planes[k * n + i] = from[3 * i + k];
  for (int k = 0; k < 3; k++) equalize(planes + k * n, planes + k * n, h, w, a, scratch);
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) to[3 * i + k] = planes[k * n + i];
}

EXPORT_KERNEL(clahe, ClaheArgs, run)
