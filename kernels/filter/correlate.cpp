// SPDX-License-Identifier: Apache-2.0
#include "filter/correlate.h"

#include "filter/taps.h"

// Size of a filter along D, H, W.
struct FilterSize {
  int64_t d, h, w;
  explicit FilterSize(const Tensor &f) {
    d = f.ndim > 2 ? f.shape[0] : 1, h = f.shape[f.ndim - 2], w = f.shape[f.ndim - 1];
  }
};

static void correlate(char *out, int out_type, const char *in, int in_type, const Grid &from, const Grid &to,
                      const float *weights, const FilterSize &f, const CorrelateArgs &a, float fill, Scratch &scratch) {
  const ToFloats to_floats = to_floats_from(in_type);
  const int64_t in_size = item_size(in_type), out_size = item_size(out_type);
  const int64_t left = a.anchor[2], right = f.w - 1 - left, c = from.c, padded = from.row() + (f.w - 1) * c;
  // A ring of rows with their borders for each slice under the filter.
  float *rings = scratch.array<float>(f.d * f.h * padded, 0), *sums = scratch.array<float>(to.row(), 1);
  for (int64_t z = 0; z < to.d; z++) {
    int64_t next = -a.anchor[1];
    for (int64_t y = 0; y < to.h; y++) {
      for (; next <= y - a.anchor[1] + f.h - 1; next++) {
        const int64_t row = border_place(next, from.h, a.border);
        for (int64_t k = 0; k < f.d; k++) {
          float *ring = rings + (k * f.h + (next + a.anchor[1]) % f.h) * padded;
          const int64_t slice = border_place(z - a.anchor[0] + k, from.d, a.border);
          if (row < 0 || slice < 0) {
            std::fill_n(ring, padded, fill);
            continue;
          }
          to_floats(ring + left * c, in + (slice * from.slice() + row * from.row()) * in_size, from.row());
          pad_row(ring + left * c, from.w, c, left, right, a.border, fill);
        }
      }
      RowSum sum(sums, to.row());
      const float *w = weights;
      for (int64_t k = 0; k < f.d; k++)
        for (int64_t i = 0; i < f.h; i++) {
          const float *ring = rings + (k * f.h + (y + i) % f.h) * padded;
          for (int64_t j = 0; j < f.w; j++) sum.add(ring + j * c, *w++);
        }
      sum.finish(out + (z * to.slice() + y * to.row()) * out_size, out_type);
    }
  }
}

static void run(const Tensor *out, const Tensor *in, const CorrelateArgs &a, Scratch &scratch) {
  const Grid from(in[0], a.n_outer, a.n_space), to(*out, a.n_outer, a.n_space);
  if (out->volume() == 0) return;
  const FilterSize f(in[1]);
  float fill = 0;
  if (a.has_fill) to_floats_from(in->dtype)(&fill, in[2].data, 1);
  for (int64_t p = 0; p < from.outer; p++)
    correlate(out->as<char>() + p * to.image() * item_size(out->dtype), out->dtype,
              in->as<char>() + p * from.image() * item_size(in->dtype), in->dtype, from, to, in[1].as<float>(), f, a,
              fill, scratch);
}

EXPORT_KERNEL(correlate, CorrelateArgs, run)
