// SPDX-License-Identifier: Apache-2.0
// Resampling of an image, volume or sequence: first combines slices of a volume, then rows, then pixels of a row.
#include "resample/resample.h"

#include <cstring>
#include <type_traits>

#include "core/kernel.h"
#include "resample/exact.h"
#include "resample/fixed_point.h"
#include "resample/float_point.h"

namespace {

// The tensors as [outer, depth, height, width, channels]; images have depth 1.
struct View {
  int64_t outer = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
};

View view_of(const Tensor &out, const Tensor &in, const ResampleArgs &a) {
  View v;
  const int n = a.n_axes, last = a.first_axis + n;
  if (n < 1 || n > 3 || a.first_axis < 0 || last > in.ndim || in.ndim != out.ndim)
    fail("[internal error] cannot resample %d axes from axis %d on of %d dimensions", n, a.first_axis, in.ndim);
  for (int d = 0; d < a.first_axis; d++) v.outer *= in.shape[d];
  for (int d = last; d < in.ndim; d++) v.channels *= in.shape[d];
  for (int d = 0; d < n; d++) {
    v.in[3 - n + d] = in.shape[a.first_axis + d];
    v.out[3 - n + d] = out.shape[a.first_axis + d];
  }
  return v;
}

// Arguments of the passes over a plane.
struct Plan {
  View view;
  Taps *slices = nullptr, *rows, *columns;
  RowFormat format;
  bool nearest;  // one tap everywhere: pixels are copied
  bool fixed;    // uint8 images with few enough taps for fixed point
};

// The input rows, and their weights, of a row of the output: those whose fixed-point weight is not zero.
struct Rows {
  const uint8_t *pointer[kMostFixedTaps];
  uint16_t weight[kMostFixedTaps];
  int n = 0;
};

void find_rows(Rows &r, const Taps &t, int y, const uint8_t *plane, int64_t pitch, RowFormat format) {
  const float *w = t.weights.data() + (int64_t)y * t.stride;
  const int16_t *fixed = t.fixed.data() + (int64_t)y * t.stride;
  int rest = 1 << 16, largest = 0;
  r.n = 0;
  for (int k = 0; k < t.k; k++) {
    const int q = format == SIGNED_Q6 ? fixed[k] : (int)lrintf(w[k] * (1 << 16));
    if (q == 0) continue;
    r.pointer[r.n] = plane + (t.first[y] + k) * pitch;
    r.weight[r.n] = (uint16_t)q;
    rest -= q;
    if (r.weight[r.n] > r.weight[largest]) largest = r.n;
    r.n++;
  }
  if (format == OFFSET_Q8) r.weight[largest] = (uint16_t)(r.weight[largest] + rest);
}

void fixed_plane(uint8_t *out, const uint8_t *in, const Plan &p, Scratch &scratch) {
  const FixedPoint &f = fixed_point();
  const Taps &rows = *p.rows, &columns = *p.columns;
  const int64_t pitch = p.view.in[2] * p.view.channels, width = (columns.hi - columns.lo) * p.view.channels;
  int16_t *row = scratch.array<int16_t>(width + kRowMargin, 0);
  memset(row + width, 0, kRowMargin * sizeof *row);
  Rows from;
  for (int y = 0; y < rows.n; y++, out += p.view.out[2] * p.view.channels) {
    find_rows(from, rows, y, in + columns.lo * p.view.channels, pitch, p.format);
    if (p.format == OFFSET_Q8)
      f.vertical(row, from.pointer, from.weight, from.n, (int)width);
    else
      f.vertical_signed(row, from.pointer, (const int16_t *)from.weight, from.n, (int)width, kToQ6);
    f.horizontal(out, row, columns, (int)p.view.channels, p.format);
  }
}

template <class Out, class In>
void plane(Out *out, const In *in, const Plan &p, Scratch &scratch) {
  const Taps &rows = *p.rows, &columns = *p.columns;
  const int64_t channels = p.view.channels, pitch = p.view.in[2] * channels,
                width = (columns.hi - columns.lo) * channels;
  if constexpr (std::is_same_v<Out, In>) {
    if (p.nearest) {
      for (int y = 0; y < rows.n; y++, out += p.view.out[2] * channels)
        pick_pixels(out, in + rows.first[y] * pitch, columns, channels);
      return;
    }
  }
  if constexpr (std::is_same_v<Out, uint8_t> && std::is_same_v<In, uint8_t>) {
    if (p.fixed) return fixed_plane(out, in, p, scratch);
  }
  float *row = scratch.array<float>(width + kFloatMargin, 0);
  memset(row + width, 0, kFloatMargin * sizeof *row);
  for (int y = 0; y < rows.n; y++, out += p.view.out[2] * channels) {
    const float *w = rows.weights.data() + (int64_t)y * rows.stride;
    combine_rows(row, in + rows.first[y] * pitch + columns.lo * channels, pitch, w, rows.k, width);
    resample_row(out, row, columns, channels);
  }
}

// The tap if output slice z has a single one with a weight; else -1.
int only_tap(const Taps &t, int z) {
  const float *w = t.weights.data() + (int64_t)z * t.stride;
  int found = -1, n = 0;
  for (int k = 0; k < t.k; k++)
    if (w[k] != 0) found = k, n++;
  return n == 1 ? found : -1;
}

template <class Out, class In>
void planes(Out *out, const In *in, const Plan &p, Scratch &scratch) {
  const View &v = p.view;
  const int64_t in_plane = v.in[1] * v.in[2] * v.channels, out_plane = v.out[1] * v.out[2] * v.channels;
  for (int64_t i = 0; i < v.outer; i++, in += v.in[0] * in_plane) {
    if (!p.slices) {
      plane(out, in, p, scratch);
      out += out_plane;
      continue;
    }
    const Taps &t = *p.slices;
    for (int z = 0; z < t.n; z++, out += out_plane) {
      const In *first = in + t.first[z] * in_plane;
      const int only = only_tap(t, z);
      if (only >= 0) {
        plane(out, first + only * in_plane, p, scratch);
      } else {
        float *combined = scratch.array<float>(in_plane, 1);
        combine_rows(combined, first, in_plane, t.weights.data() + (int64_t)z * t.stride, t.k, in_plane);
        plane(out, combined, p, scratch);
      }
    }
  }
}

// Depends on the whole image, so that its windows take the same path.
bool has_few_taps(const Taps &t) { return most_taps(t.key.axis) <= kMostFixedTaps; }

void run(const Tensor *out, const Tensor *in, const ResampleArgs &a, Scratch &scratch) {
  Plan p;
  p.view = view_of(*out, *in, a);
  if (a.save_sizes)
    for (int d = 0; d < a.n_axes; d++) out[1].as<int32_t>()[d] = (int32_t)a.in_size[d];
  if (out->volume() == 0) return;
  if (in->volume() == 0) fail("cannot resize an empty image");
  Taps *taps[3] = {};
  for (int d = 0; d < a.n_axes; d++) {
    const int slot = 3 - a.n_axes + d;
    taps[slot] =
        &taps_for(slot, resample_axis(a, d), a.in_origin[d], p.view.in[slot], a.out_origin[d], p.view.out[slot]);
  }
  if (!taps[1]) {  // a line is a plane of one row
    const ResampleAxis row{0, 1, 1, 0.5, 1, 0, NN, false, DALI_RULE, false, false, 1, 1};
    taps[1] = &taps_for(1, row, 0, 1, 0, 1);
  }
  p.slices = taps[0];
  p.rows = taps[1];
  p.columns = taps[2];
  p.nearest = p.rows->k == 1 && p.columns->k == 1;
  const int filter = p.rows->key.axis.filter;
  p.format = filter == CUBIC || filter == LANCZOS3 ? SIGNED_Q6 : OFFSET_Q8;
  p.fixed =
      in->dtype == UINT8 && out->dtype == UINT8 && !p.nearest && has_few_taps(*p.rows) && has_few_taps(*p.columns);
  if (a.rule && in->dtype == UINT8 && out->dtype == UINT8 && !p.nearest) {
    if (p.slices) fail("volumes can't be resized by the rules of Pillow or PyTorch; use rule=\"dali\"");
    const int64_t in_plane = p.view.in[1] * p.view.in[2] * p.view.channels,
                  out_plane = p.view.out[1] * p.view.out[2] * p.view.channels;
    for (int64_t i = 0; i < p.view.outer; i++)
      exact_plane(out->as<uint8_t>() + i * out_plane, in->as<uint8_t>() + i * in_plane, p.view.in[2] * p.view.channels,
                  *p.rows, *p.columns, (int)p.view.channels, scratch);
    return;
  }
  if (p.fixed) {
    make_fixed(*p.rows);
    fixed_point().prepare(*p.columns, (int)p.view.channels);
  }
  for_types<uint8_t, uint16_t, int16_t, float>(in->dtype, [&](auto i) {
    using In = decltype(i);
    if (out->dtype == FLOAT)
      planes(out->as<float>(), in->as<In>(), p, scratch);
    else if (out->dtype == in->dtype)
      planes(out->as<In>(), in->as<In>(), p, scratch);
    else
      fail("[internal error] resampling converts to float only");
  });
}

}  // namespace

EXPORT_KERNEL(resample, ResampleArgs, run)
