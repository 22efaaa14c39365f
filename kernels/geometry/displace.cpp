// SPDX-License-Identifier: Apache-2.0
#include "geometry/displace.h"

#include "core/kernel.h"
#include "geometry/sample_rows.h"

namespace {

// Splits the coordinates of a row along an axis of the input.
CLONES void split_row(int32_t *__restrict index, float *__restrict weight, const float *__restrict at, int64_t n,
                      bool between) {
  for (int64_t x = 0; x < n; x++) index[x] = warp_split(at[x], 0, between, false, weight + x);
}

// Columns have 32 bits, which AVX2 can convert.
CLONES void perspective_row(float *__restrict u, float *__restrict v, int32_t n, const DisplaceArgs &args, float y) {
  const DisplaceArgs a = args;
  const float cy = y + 0.5f, w0 = a.p[7] * cy + a.p[8], u0 = a.p[1] * cy + a.p[2], v0 = a.p[4] * cy + a.p[5];
  const int32_t first = (int32_t)a.origin[0];
  for (int32_t i = 0; i < n; i++) {
    const float cx = (float)(i + first) + 0.5f, w = a.p[6] * cx + w0;
    u[i] = (a.p[0] * cx + u0) / w;
    v[i] = (a.p[3] * cx + v0) / w;
  }
}
CLONES void sphere_row(float *__restrict u, float *__restrict v, int32_t n, const DisplaceArgs &args, float y) {
  const DisplaceArgs a = args;
  const float mx = (float)a.extent[0] * 0.5f, my = (float)a.extent[1] * 0.5f, dy = y + 0.5f - my;
  const float radius = (float)displace_radius(a);
  const int32_t first = (int32_t)a.origin[0];
  for (int32_t i = 0; i < n; i++) {
    const float dx = (float)(i + first) + 0.5f - mx, share = __builtin_sqrtf(dx * dx + dy * dy) / radius;
    u[i] = mx + dx * share, v[i] = my + dy * share;
  }
}
CLONES void water_row(float *__restrict u, float *__restrict v, const float *__restrict waves, int32_t n, int32_t first,
                      float shift, float y) {
  for (int32_t i = 0; i < n; i++) u[i] = (float)(i + first) + shift, v[i] = y + waves[i];
}
void jitter_row(float *u, float *v, int64_t n, const DisplaceArgs &a, int64_t row) {
  uint32_t words[4], known = ~0u;
  for (int64_t i = 0; i < n; i++) {
    const int64_t x = i + a.origin[0], pixel = row * a.extent[0] + x;
    if ((uint32_t)(pixel >> 2) != known) jitter_words(a, known = (uint32_t)(pixel >> 2), words);
    u[i] = (float)x + 0.5f + jitter_step(words[pixel & 3] & 0xffff, a.range);
    v[i] = (float)row + 0.5f + jitter_step(words[pixel & 3] >> 16, a.range);
  }
}

template <class T>
void run_type(const Tensor *out, const Tensor *in, const DisplaceArgs &a, Scratch &scratch) {
  const bool planar = a.planar;
  Planes<T> image(out, in, planar);
  Source<2, T> &s = image.source;
  if (out->volume() == 0) return;
  if (in->volume() == 0 && a.border != kBorderConstant)
    fail("the input is empty and has no border to repeat; use border_mode=\"constant\"");
  const int first = planar ? out->ndim - 2 : 0;
  const int64_t height = out->shape[first], n = out->shape[first + 1];
  check_row(n, a.origin[0]);
  const int channels = image.count * s.channels;
  T *fill = scratch.array<T>(channels, 0);
  for (int c = 0; c < channels; c++) fill[c] = saturate<T>(displace_fill(a, c));
  int32_t *index = scratch.array<int32_t>(n * 2, 1);
  float *weight = scratch.array<float>(n * 2, 2), *places = scratch.array<float>(n * 3, 3);
  float *u = places, *v = places + n, *waves = places + 2 * n;
  for (int d = 0; d < 2; d++) s.index[d] = index + d * n, s.weight[d] = weight + d * n;
  s.border = a.border;
  const int kind = a.still ? (int)kIdentity : a.kind;
  if (kind == kWater)
    for (int64_t i = 0; i < n; i++) waves[i] = a.p[3] * __builtin_cosf(a.p[4] * (float)(i + a.origin[0]) + a.p[5]);
  for (int64_t y = 0; y < height; y++) {
    const int64_t row = y + a.origin[1];
    if (kind == kPerspective)
      perspective_row(u, v, (int32_t)n, a, (float)row);
    else if (kind == kSphere)
      sphere_row(u, v, (int32_t)n, a, (float)row);
    else if (kind == kWater)
      water_row(u, v, waves, (int32_t)n, (int32_t)a.origin[0], a.p[0] * __builtin_sinf(a.p[1] * (float)row + a.p[2]),
                (float)row);
    else if (kind == kJitter)
      jitter_row(u, v, n, a, row);
    else
      for (int64_t i = 0; i < n; i++) u[i] = (float)(i + a.origin[0]) + 0.5f, v[i] = (float)row + 0.5f;
    split_row(index, weight, u, n, a.interp);
    split_row(index + n, weight + n, v, n, a.interp);
    for (int p = 0; p < image.count; p++) {
      s.data = in->as<T>() + p * image.in_plane;
      s.fill = a.border == kBorderConstant ? fill + p : nullptr;
      sample_row(out->as<T>() + p * image.out_plane + y * n * s.channels, s, n, a.interp);
    }
  }
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const DisplaceArgs &a, Scratch &scratch) {
  for_types<uint8_t, uint16_t, int16_t, float>(in->dtype, [&](auto t) { run_type<decltype(t)>(out, in, a, scratch); });
}

EXPORT_KERNEL(displace, DisplaceArgs, run)
