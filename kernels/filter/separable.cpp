// SPDX-License-Identifier: Apache-2.0
#include "filter/separable.h"

#include "filter/taps.h"

namespace {

// An image in memory and the type of its elements.
struct Elements {
  char *data;
  int dtype;
  int64_t size;  // bytes of an element
  explicit Elements(const Tensor &t) : data(t.as<char>()), dtype(t.dtype), size(item_size(t.dtype)) {}
  char *at(int64_t element) const { return data + element * size; }
};

// Rows of a volume as floats with their borders. Rows of a slice are best read in order.
class Rows {
 public:
  Rows(const Elements &in, const Grid &g, float *row, float *whole, int64_t radius)
      : in_(in),
        to_floats_(to_floats_from(in.dtype)),
        g_(g),
        row_(row + radius * g.c),
        whole_(whole),
        radius_(radius) {}

  // Returns the first pixel of row y, combined along depth around slice z by `window`.
  const float *get(int64_t z, int64_t y, const float *window, int64_t size) {
    const int64_t n = g_.row();
    if (size == 1) {
      if (y != held_ || z != slice_)
        to_floats_(row_, at(z, y), n);
      else
        return row_;
      held_ = y, slice_ = z;
    } else {
      RowSum sum(row_, n);
      float *next = whole_;
      for (int64_t k = 0; k < size; k++, next += n) {
        to_floats_(next, at(border_place(z + k - size / 2, g_.d, REFLECT_101), y), n);
        sum.add(next, window[k]);
      }
      sum.finish(row_, FLOAT);
      held_ = -1;
    }
    pad_row(row_, g_.w, g_.c, radius_, radius_, REFLECT_101, 0.0f);
    return row_;
  }

 private:
  const char *at(int64_t z, int64_t y) const { return in_.at(z * g_.slice() + y * g_.row()); }
  const Elements in_;
  const ToFloats to_floats_;
  const Grid &g_;
  float *row_, *whole_;
  int64_t radius_, held_ = -1, slice_ = -1;
};

void filter(const Elements &out, const Elements &in, const Grid &g, const SeparableArgs &a, Scratch &scratch) {
  const int64_t n = g.row();
  int64_t depth = 1, height = 0, radius = 0;
  for (int t = 0; t < a.terms; t++) {
    depth = std::max<int64_t>(depth, a.size[3 * t]);
    height += a.size[3 * t + 1];
    radius = std::max<int64_t>(radius, a.size[3 * t + 2] / 2);
  }
  // For each term, a ring of rows that were filtered along W.
  float *rings = scratch.array<float>(height * n, 0), *row = scratch.array<float>(n + 2 * radius * g.c, 1);
  float *sums = scratch.array<float>(n, 2), *whole = scratch.array<float>(depth * n, 3);
  for (int64_t z = 0; z < g.d; z++) {
    Rows rows(in, g, row, whole, radius);
    int64_t next[3];
    for (int t = 0; t < a.terms; t++) next[t] = -(a.size[3 * t + 1] / 2);
    for (int64_t y = 0; y < g.h; y++) {
      RowSum sum(sums, n);
      float *ring = rings;
      for (int t = 0; t < a.terms; t++) {
        const float *window = a.windows + 3 * t * a.stride;
        const int32_t *size = a.size + 3 * t;
        for (; next[t] <= y + size[1] / 2; next[t]++) {
          const float *x = rows.get(z, border_place(next[t], g.h, REFLECT_101), window, size[0]);
          float *to = ring + (next[t] + size[1]) % size[1] * n;
          RowSum across(to, n);
          const float *w = window + 2 * a.stride;
          for (int64_t k = 0; k < size[2]; k++) across.add(x + (k - size[2] / 2) * g.c, w[k]);
          across.finish(to, FLOAT);
        }
        int64_t at = (y - size[1] / 2 + size[1]) % size[1];  // a division for each row takes longer than a narrow one
        for (int64_t k = 0; k < size[1]; k++) {
          sum.add(ring + at * n, window[a.stride + k]);
          if (++at == size[1]) at = 0;
        }
        ring += size[1] * n;
      }
      sum.finish(out.at(z * g.slice() + y * n), out.dtype);
    }
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const SeparableArgs &a, Scratch &scratch) {
  const Grid g(*in, a.n_outer, a.n_space);
  if (in->volume() == 0) return;
  Elements to(*out), from(*in);
  for (int64_t p = 0; p < g.outer; p++) {
    filter(to, from, g, a, scratch);
    to.data = to.at(g.image()), from.data = from.at(g.image());
  }
}

EXPORT_KERNEL(separable, SeparableArgs, run)
