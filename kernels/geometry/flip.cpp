// SPDX-License-Identifier: Apache-2.0
#include "geometry/flip.h"

#include "core/stream.h"
#include "geometry/reverse_pixels.h"

namespace {

struct Walk {
  const int64_t *extent;
  const uint8_t *flip;
  int last;                                       // input and output are alike in the axes after this one
  int64_t in_step[kMaxDims], out_step[kMaxDims];  // bytes
  Scratch &scratch;

  void visit(char *out, const char *in, int d) const {
    const int64_t n = extent[d];
    if (d == last) {
      if (!flip[d]) return copy_out(out, in, n * out_step[d], scratch);
      if (!scratch.is_output_large) return reverse_pixels(out, in, n, out_step[d]);
      char *row = scratch.array<char>(n * out_step[d]);
      reverse_pixels(row, in, n, out_step[d]);
      stream_copy(out, row, n * out_step[d]);
      return;
    }
    for (int64_t i = 0; i < n; i++) visit(out + i * out_step[d], in + (flip[d] ? n - 1 - i : i) * in_step[d], d + 1);
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const FlipArgs &a, Scratch &scratch) {
  if (out->volume() == 0) return;
  Walk w{out->shape, a.flip, 0, {}, {}, scratch};
  int64_t in_step = item_size(in->dtype), out_step = in_step, offset = 0;
  for (int d = in->ndim - 1; d >= 0; d--) {
    w.in_step[d] = in_step, w.out_step[d] = out_step;
    offset += a.start[d] * in_step;
    if (w.last == 0 && (a.flip[d] || in->shape[d] != out->shape[d])) w.last = d;
    in_step *= in->shape[d], out_step *= out->shape[d];
  }
  w.visit(out->as<char>(), in->as<char>() + offset, 0);
}

EXPORT_KERNEL(flip, FlipArgs, run)
