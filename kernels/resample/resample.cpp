// SPDX-License-Identifier: Apache-2.0
#include "resample/resample.h"

#include <cstring>

#include "core/kernel.h"
#include "resample/fixed_point.h"
#include "resample/taps.h"

namespace {

struct Extents {
  int64_t outer = 1, inner = 1;
  int64_t in[3], out[3];
};

Extents extents_of(const Tensor &out, const Tensor &in, const ResampleArgs &a) {
  Extents e;
  if (a.n_axes < 1 || a.n_axes > 3 || a.first_axis < 0 || a.first_axis + a.n_axes > in.ndim || in.ndim != out.ndim)
    fail("[internal error] resampling %d axes from %d on in %d dimensions", a.n_axes, a.first_axis, in.ndim);
  for (int d = 0; d < a.first_axis; d++) e.outer *= in.shape[d];
  for (int d = a.first_axis + a.n_axes; d < in.ndim; d++) e.inner *= in.shape[d];
  // Missing outer axes are of length one.
  for (int d = 0; d < 3; d++) e.in[d] = e.out[d] = 1;
  for (int d = 0; d < a.n_axes; d++) {
    e.in[3 - a.n_axes + d] = in.shape[a.first_axis + d];
    e.out[3 - a.n_axes + d] = out.shape[a.first_axis + d];
  }
  return e;
}


// Row y of a plane is the combination of the rows of its vertical taps that weigh anything.
struct Rows {
  const uint8_t *pointer[kMostFixedTaps];
  uint16_t weight[kMostFixedTaps];
  int n = 0;
};

Rows rows_of(const Taps &v, int y, const uint8_t *plane, int64_t pitch, RowFormat format) {
  Rows r;
  const float *w = v.weights.data() + (int64_t)y * v.stride;
  const int16_t *fixed = v.fixed.data() + (int64_t)y * v.stride;
  int rest = 65536, largest = 0;
  for (int k = 0; k < v.k; k++) {
    int q = format == SIGNED_Q6 ? fixed[k] : (int)lrintf(w[k] * 65536);
    if (q == 0) continue;
    r.pointer[r.n] = plane + (v.first[y] + k) * pitch;
    r.weight[r.n] = (uint16_t)q;
    rest -= q;
    if (r.weight[r.n] > r.weight[largest]) largest = r.n;
    r.n++;
  }
  if (format == OFFSET_Q8) r.weight[largest] = (uint16_t)(r.weight[largest] + rest);
  return r;
}

void run_fixed(uint8_t *out, const uint8_t *in, const Extents &e, const Taps &v, Taps &h, Scratch &scratch) {
  const FixedPoint &f = fixed_point();
  const int channels = (int)e.inner;
  const RowFormat format = v.key.axis.filter == CUBIC || v.key.axis.filter == LANCZOS3 ? SIGNED_Q6 : OFFSET_Q8;
  f.prepare(h, channels);
  const int64_t pitch = e.in[2] * channels, width = (int64_t)(h.hi - h.lo) * channels;
  int16_t *row = scratch.array<int16_t>(width + kRowMargin);
  memset(row + width, 0, kRowMargin * sizeof *row);
  for (int64_t plane = 0; plane < e.outer; plane++) {
    const uint8_t *from = in + plane * e.in[1] * pitch + (int64_t)h.lo * channels;
    for (int y = 0; y < v.n; y++, out += e.out[2] * channels) {
      Rows r = rows_of(v, y, from, pitch, format);
      if (format == OFFSET_Q8)
        f.vertical(row, r.pointer, r.weight, r.n, (int)width);
      else
        f.vertical_signed(row, r.pointer, (const int16_t *)r.weight, r.n, (int)width);
      f.horizontal(out, row, h, channels, format);
    }
  }
}

void run(const Tensor *out, const Tensor *in, const ResampleArgs &a, Scratch &scratch) {
  const Extents e = extents_of(*out, *in, a);
  if (out->volume() == 0) return;
  if (in->volume() == 0) fail("cannot resize an empty image");
  const int first = 3 - a.n_axes;
  Taps *t[3] = {};
  for (int d = 0; d < a.n_axes; d++)
    t[first + d] = &taps_for(first + d, resample_axis(a, d), a.in_origin[d], e.in[first + d], a.out_origin[d], e.out[first + d]);
  if (in->dtype == UINT8 && out->dtype == UINT8 && !t[0] && t[1] && t[1]->k <= kMostFixedTaps && t[2]->k <= kMostFixedTaps) {
    make_fixed(*t[1]);
    run_fixed(out->as<uint8_t>(), in->as<uint8_t>(), e, *t[1], *t[2], scratch);
    return;
  }
  fail("[internal error] not yet");
}

}  // namespace

EXPORT_KERNEL(resample, ResampleArgs, run)
