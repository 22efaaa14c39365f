// SPDX-License-Identifier: Apache-2.0
#include "filter/separable.h"

#include "filter/taps.h"

// Rows of a volume as floats with their borders. The rows of one slice are wanted one behind the other.
template <class T>
class Rows {
 public:
  Rows(const T *in, const Grid &g, float *row, float *whole, int64_t radius)
      : in_(in), g_(g), row_(row + radius * g.c), whole_(whole), radius_(radius) {}

  // The first pixel of row y of the slices around z, combined by a window.
  const float *get(int64_t z, int64_t y, const float *window, int64_t size) {
    const int64_t n = g_.row();
    if (size == 1) {
      if (y != held_ || z != slice_)
        to_floats(row_, at(z, y), n);
      else
        return row_;
      held_ = y, slice_ = z;
    } else {
      RowSum sum(row_, n);
      float *next = whole_;
      for (int64_t k = 0; k < size; k++, next += n) {
        to_floats(next, at(border_place(z + k - size / 2, g_.d, REFLECT_101), y), n);
        sum.add(next, window[k]);
      }
      sum.finish(row_);
      held_ = -1;
    }
    pad_row(row_, g_.w, g_.c, radius_, radius_, REFLECT_101, 0.0f);
    return row_;
  }

 private:
  const T *at(int64_t z, int64_t y) const { return in_ + z * g_.slice() + y * g_.row(); }
  const T *in_;
  const Grid &g_;
  float *row_, *whole_;
  int64_t radius_, held_ = -1, slice_ = -1;
};

template <class Out, class In>
static void filter(Out *out, const In *in, const Grid &g, const SeparableArgs &a, Scratch &scratch) {
  const int64_t n = g.row();
  int64_t depth = 1, height = 0, radius = 0;
  for (int t = 0; t < a.terms; t++) {
    depth = std::max<int64_t>(depth, a.size[3 * t]);
    height += a.size[3 * t + 1];
    radius = std::max<int64_t>(radius, a.size[3 * t + 2] / 2);
  }
  // Per term a ring of rows that are filtered along W already.
  float *rings = scratch.array<float>(height * n, 0), *row = scratch.array<float>(n + 2 * radius * g.c, 1);
  float *sums = scratch.array<float>(n, 2), *whole = scratch.array<float>(depth * n, 3);
  for (int64_t z = 0; z < g.d; z++) {
    Rows<In> rows(in, g, row, whole, radius);
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
          across.finish(to);
        }
        for (int64_t k = 0; k < size[1]; k++)
          sum.add(ring + (y + k - size[1] / 2 + size[1]) % size[1] * n, window[a.stride + k]);
        ring += size[1] * n;
      }
      sum.finish(out + z * g.slice() + y * n);
    }
  }
}

static void run(const Tensor *out, const Tensor *in, const SeparableArgs &a, Scratch &scratch) {
  const Grid g(*in, a.n_outer, a.n_space);
  if (in->volume() == 0) return;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, half, float, double>(
      in->dtype, [&](auto i) {
        using In = decltype(i);
        auto both = [&](auto o) {
          for (int64_t p = 0; p < g.outer; p++)
            filter(out->as<decltype(o)>() + p * g.image(), in->as<In>() + p * g.image(), g, a, scratch);
        };
        out->dtype == FLOAT ? both(float{}) : both(In{});
      });
}

EXPORT_KERNEL(separable, SeparableArgs, run)
