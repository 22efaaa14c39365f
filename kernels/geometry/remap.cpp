// SPDX-License-Identifier: Apache-2.0
#include "geometry/remap.h"

#include <cstring>

#include "core/kernel.h"
#include "geometry/sample_rows.h"

namespace {

// Splits a row of a map. Returns whether all positions belong to an image of `extent` pixels along this axis.
CLONES bool split_map(int32_t *__restrict index, float *__restrict weight, const float *__restrict map, int64_t n,
                      float shift, float first, float end, int32_t extent) {
  int32_t any = 0;
  for (int64_t x = 0; x < n; x++) any |= index[x] = remap_split(map[x], shift, first, end, extent, weight + x);
  return any >= 0;
}

// Without branches, for SIMD.
CLONES bool all_belong(const int32_t *x, const int32_t *y, int64_t n) {
  int32_t any = 0;
  for (int64_t i = 0; i < n; i++) any |= x[i] | y[i];
  return any >= 0;
}

// A row with positions that don't belong to the image, which become 0.
template <class T>
void remap_row(T *out, const Source<2, T> &s, int64_t n, int interp) {
  constexpr int64_t kBlock = 64;
  auto belongs = [&](int64_t x) { return (s.index[0][x] | s.index[1][x]) >= 0; };
  for (int64_t x = 0; x < n;) {
    const int64_t begin = x;
    const bool found = belongs(x);
    if (found)
      while (x + kBlock <= n && all_belong(s.index[0] + x, s.index[1] + x, kBlock)) x += kBlock;
    while (x < n && belongs(x) == found) x++;
    T *const run = out + begin * s.channels;
    if (!found) {
      std::memset(run, 0, (x - begin) * s.channels * sizeof(T));
      continue;
    }
    Source<2, T> part = s;
    for (int d = 0; d < 2; d++) part.index[d] += begin, part.weight[d] += begin;
    sample_row(run, part, x - begin, interp);
  }
}

template <class T>
void remap(const Tensor *out, const Tensor *in, const RemapArgs &a, Scratch &scratch) {
  Planes<T> image(out, in, false);
  Source<2, T> &s = image.source;
  if (out->volume() == 0) return;
  const int64_t height = out->shape[0], n = out->shape[1], map_width = in[1].shape[1];
  s.fill = nullptr;
  int32_t *index = scratch.array<int32_t>(n * 2, 0);
  float *weight = scratch.array<float>(n * 2, 1);
  for (int d = 0; d < 2; d++) s.index[d] = index + d * n, s.weight[d] = weight + d * n;
  s.data = in->as<T>();
  for (int64_t y = 0; y < height; y++) {
    const int64_t first = (y + a.origin[1]) * map_width + a.origin[0];
    bool all = true;
    for (int d = 0; d < 2; d++)
      all &= split_map(index + d * n, weight + d * n, in[1 + d].as<float>() + first, n, a.shift,
                       remap_first(a.interp, a.shift), remap_end(a.interp, (int32_t)s.extent[d]), (int32_t)s.extent[d]);
    T *const row = out->as<T>() + y * n * s.channels;
    all ? sample_row(row, s, n, a.interp) : remap_row(row, s, n, a.interp);
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const RemapArgs &a, Scratch &scratch) {
  for_types<uint8_t, uint16_t, int16_t, float>(in->dtype, [&](auto t) { remap<decltype(t)>(out, in, a, scratch); });
}

EXPORT_KERNEL(remap, RemapArgs, run)
