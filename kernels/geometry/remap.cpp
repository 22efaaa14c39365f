// SPDX-License-Identifier: Apache-2.0
#include "geometry/remap.h"

#include <cstring>

#include "core/kernel.h"
#include "geometry/sample_rows.h"

namespace {

CLONES void split_map(int32_t *__restrict index, float *__restrict weight, const float *__restrict map, int64_t n,
                      float shift) {
  for (int64_t x = 0; x < n; x++) index[x] = remap_split(map[x], shift, weight + x);
}

template <class T>
void remap(const Tensor *out, const Tensor *in, const RemapArgs &a, Scratch &scratch) {
  Planes<T> image(out, in, false);
  Source<2, T> &s = image.source;
  if (out->volume() == 0) return;
  const int64_t height = out->shape[0], n = out->shape[1], map_width = in[1].shape[1];
  T *fill = scratch.array<T>(s.channels, 0);
  std::memset(fill, 0, s.channels * sizeof(T));
  s.fill = fill;
  int32_t *index = scratch.array<int32_t>(n * 2, 1);
  float *weight = scratch.array<float>(n * 2, 2);
  for (int d = 0; d < 2; d++) s.index[d] = index + d * n, s.weight[d] = weight + d * n;
  s.data = in->as<T>();
  for (int64_t y = 0; y < height; y++) {
    const int64_t first = (y + a.origin[1]) * map_width + a.origin[0];
    for (int d = 0; d < 2; d++) split_map(index + d * n, weight + d * n, in[1 + d].as<float>() + first, n, a.shift);
    sample_row(out->as<T>() + y * n * s.channels, s, n, a.interp);
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const RemapArgs &a, Scratch &scratch) {
  for_types<uint8_t, uint16_t, int16_t, float>(in->dtype, [&](auto t) { remap<decltype(t)>(out, in, a, scratch); });
}

EXPORT_KERNEL(remap, RemapArgs, run)
