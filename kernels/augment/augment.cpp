// SPDX-License-Identifier: Apache-2.0
#include "augment/augment.h"

#include <algorithm>
#include <cstring>

#include "augment/tables.h"
#include "color/color_matrix.h"
#include "core/kernel.h"

extern "C" int warp(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);
extern "C" int color_matrix(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

namespace {

struct Image {
  int64_t height, width;
  int channels;
  int64_t row() const { return width * channels; }
  int64_t volume() const { return height * row(); }
};

void call(int (*kernel)(Tensor *, const Tensor *, const void *, Scratch *, char *), const Tensor &like, uint8_t *out,
          const uint8_t *in, const void *args, Scratch &scratch) {
  Tensor to = like, from = like;
  to.data = out, from.data = (void *)in;
  char error[kErrorSize];
  if (kernel(&to, &from, args, &scratch, error)) fail("%s", error);
}

// One row of a filter with equal weights for the eight neighbours. `sums`: vertical sums of three rows, with one more
// pixel on each side.
CLONES void filter_even_row(uint8_t *__restrict out, const uint8_t *__restrict in, const uint16_t *__restrict sums,
                            int64_t n, int channels, float around, float middle) {
  for (int64_t x = 0; x < n; x++) {
    const int all = sums[x] + sums[x + channels] + sums[x + 2 * channels];
    out[x] = augment_filter_even(all - in[x], in[x], around, middle);
  }
}
CLONES void add_rows(uint16_t *__restrict sums, const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n) {
  for (int64_t x = 0; x < n; x++) sums[x] = (uint16_t)(a[x] + b[x] + c[x]);
}
CLONES void filter_row(uint8_t *__restrict out, const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n,
                       int channels, const float *k) {
  const float k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4], k5 = k[5], k6 = k[6], k7 = k[7], k8 = k[8];
  for (int64_t x = 0; x < n; x++) {
    const int64_t y = x + channels, z = y + channels;
    float v = (float)a[x] * k0 + (float)a[y] * k1 + (float)a[z] * k2;
    v += (float)b[x] * k3 + (float)b[y] * k4 + (float)b[z] * k5;
    v += (float)c[x] * k6 + (float)c[y] * k7 + (float)c[z] * k8;
    out[x] = saturate<uint8_t>(v);
  }
}

// Copies a row and adds its border: one more pixel on each side.
void pad_row(uint8_t *out, const uint8_t *in, const Image &im) {
  const int c = im.channels;
  memcpy(out + c, in, im.row());
  memcpy(out, in + augment_reflect(-1, im.width) * c, c);
  memcpy(out + c + im.row(), in + augment_reflect(im.width, im.width) * c, c);
}

void filter(uint8_t *out, const uint8_t *in, const Image &im, const float *k, Scratch &scratch) {
  const int c = im.channels;
  const int64_t n = im.row(), padded = n + 2 * c;
  auto row = [&](int64_t y) { return in + augment_reflect(y, im.height) * n; };
  if (augment_is_even(k)) {
    uint16_t *sums = scratch.array<uint16_t>(padded, 0);
    for (int64_t y = 0; y < im.height; y++) {
      add_rows(sums + c, row(y - 1), row(y), row(y + 1), n);
      memcpy(sums, sums + c + augment_reflect(-1, im.width) * c, c * sizeof *sums);
      memcpy(sums + c + n, sums + c + augment_reflect(im.width, im.width) * c, c * sizeof *sums);
      filter_even_row(out + y * n, row(y), sums, n, c, k[0], k[4]);
    }
    return;
  }
  uint8_t *rows = scratch.array<uint8_t>(3 * padded, 0);
  for (int64_t y = 0; y < im.height; y++) {
    for (int d = 0; d < 3; d++) pad_row(rows + d * padded, row(y - 1 + d), im);
    filter_row(out + y * n, rows, rows + padded, rows + 2 * padded, n, c, k);
  }
}

void apply(const AugmentArgs &a, const float *step, const Tensor &like, uint8_t *out, const uint8_t *in,
           const Image &im, Scratch &scratch) {
  const int kind = augment_kind(step);
  if (kind == AUGMENT_WARP) {
    WarpArgs w;
    augment_warp(&w, a, step, im.height, im.width);
    return call(warp, like, out, in, &w, scratch);
  }
  if (kind == AUGMENT_COLOR) {
    ColorMatrixArgs m = {};
    std::copy(step + 1, step + 10, m.matrix);
    return call(color_matrix, like, out, in, &m, scratch);
  }
  if (kind == AUGMENT_FILTER) return filter(out, in, im, step + 1, scratch);
  uint8_t *tables = scratch.array<uint8_t>(256 * im.channels, 1);
  if (augment_is_per_channel(kind)) {
    Histograms h(scratch, im.channels);
    make_tables(tables, kind, in, im.height * im.width, im.channels, h);
    return apply_tables(out, in, im.volume(), tables, im.channels);
  }
  float center = 0;
  if (kind == AUGMENT_CONTRAST) {
    int64_t *sums = scratch.array<int64_t>(im.channels, 2);
    sum_channels(sums, in, im.height * im.width, im.channels);
    center = augment_luma(sums, im.channels, im.height * im.width);
  }
  for (int v = 0; v < 256; v++)
    tables[v] = kind == AUGMENT_CONTRAST ? augment_contrast(center, step[1], v) : augment_entry(kind, step[1], v);
  apply_table(out, in, im.volume(), tables);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const AugmentArgs &a, Scratch &scratch) {
  const Image im = {in->shape[0], in->shape[1], (int)in->shape[2]};
  int left = 0;
  for (int i = 0; i < a.n_steps; i++) left += augment_kind(a.steps + i * kStepFloats) != AUGMENT_NOTHING;
  const uint8_t *from = in->as<uint8_t>();
  if (im.volume() == 0) return;
  if (!left) memcpy(out->as<uint8_t>(), from, im.volume());
  // Steps alternate between the output and scratch, so that the last step writes to the output.
  for (int i = 0; i < a.n_steps; i++) {
    const float *step = a.steps + i * kStepFloats;
    if (augment_kind(step) == AUGMENT_NOTHING) continue;
    left--;
    uint8_t *to = left % 2 ? scratch.array<uint8_t>(im.volume(), 3) : out->as<uint8_t>();
    apply(a, step, *in, to, from, im, scratch);
    from = to;
  }
}

EXPORT_KERNEL(augment, AugmentArgs, run)
