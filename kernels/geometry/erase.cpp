// SPDX-License-Identifier: Apache-2.0
#include "geometry/erase.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "geometry/fill.h"
#include "geometry/truncated.h"

namespace {

struct Region {
  const Fill &fill;
  int64_t begin[kMaxDims], end[kMaxDims];
  int last;  // axes after this one are filled as a whole

  void visit(char *out, int d, int64_t c) const {
    if (d == last) return fill.range(out, d, begin[d], end[d], c);
    for (int64_t i = begin[d]; i < end[d]; i++)
      visit(out + i * fill.step[d] * fill.size, d + 1, d == fill.channels ? i : c);
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const EraseArgs &a, Scratch &scratch) {
  const int64_t n = out->volume();
  if (n == 0) return;
  std::memcpy(out->data, in->data, n * item_size(out->dtype));
  if (out->ndim == 0) return;
  Fill fill;
  fill.of(out, a.channels);
  fill.values = scratch.array<char>(fill.count() * fill.size);
  for_any_dtype(out->dtype, [&](auto o) {
    typedef decltype(o) Out;
    for (int64_t c = 0; c < fill.count(); c++) ((Out *)fill.values)[c] = truncated<Out>(a.fill[c]);
  });
  for (int r = 0; r < a.regions; r++) {
    Region region{fill, {}, {}, 0};
    bool empty = false;
    for (int d = 0; d < out->ndim; d++) {
      const int64_t extent = out->shape[d];
      const int64_t b = region.begin[d] = std::clamp<int64_t>(a.begin[r * out->ndim + d], 0, extent);
      const int64_t e = region.end[d] = std::clamp<int64_t>(a.end[r * out->ndim + d], 0, extent);
      empty = empty || e <= b;
      if (e - b < extent) region.last = d;
    }
    if (!empty) region.visit(out->as<char>(), 0, 0);
  }
}

EXPORT_KERNEL(erase, EraseArgs, run)
