// SPDX-License-Identifier: Apache-2.0
#include "color/grid_mask.h"

#include <cstring>

#include "core/kernel.h"

// 1 where a pixel of the row is kept.
CLONES static void mask_of_row(uint8_t *__restrict keep, int64_t width, float y, const GridMaskArgs &a) {
  const float y_cosine = y * a.cosine, y_sine = y * a.sine;
  const int32_t first = (int32_t)a.first_x;
  for (int32_t x = 0; x < (int32_t)width; x++) keep[x] = grid_keeps((float)(x + first), y_cosine, y_sine, a);
}

template <int C>
CLONES static void spread(uint8_t *__restrict each, const uint8_t *__restrict keep, int64_t width) {
  for (int64_t x = 0; x < width; x++)
    for (int c = 0; c < C; c++) each[C * x + c] = keep[x];
}

template <class T>
CLONES static void apply(T *__restrict out, const T *__restrict in, const uint8_t *__restrict keep, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = keep[i] ? in[i] : T(0);
}

template <class T>
static void mask(T *out, const T *in, const Tensor &shape, const GridMaskArgs &a, Scratch &scratch) {
  int64_t planes = 1, inner = 1;
  for (int d = 0; d < a.y_axis; d++) planes *= shape.shape[d];
  for (int d = a.x_axis + 1; d < shape.ndim; d++) inner *= shape.shape[d];
  const int64_t height = shape.shape[a.y_axis], width = shape.shape[a.x_axis], row = width * inner;
  uint8_t *keep = scratch.array<uint8_t>(width, 0), *each = keep;
  if (inner > 1) each = scratch.array<uint8_t>(row, 1);
  for (int64_t y = 0; y < height; y++) {
    mask_of_row(keep, width, (float)(int32_t)(y + a.first_y), a);
    if (inner == 3) {
      spread<3>(each, keep, width);
    } else if (inner > 1) {
      for (int64_t x = 0; x < width; x++) std::memset(each + x * inner, keep[x], inner);
    }
    for (int64_t p = 0; p < planes; p++) apply(out + (p * height + y) * row, in + (p * height + y) * row, each, row);
  }
}

static void run(const Tensor *out, const Tensor *in, const GridMaskArgs &a, Scratch &scratch) {
  if (in->volume() == 0) return;
  for_types<uint8_t, int16_t, int32_t, float>(in->dtype, [&](auto t) {
    typedef decltype(t) T;
    mask(out->as<T>(), in->as<T>(), *in, a, scratch);
  });
}

EXPORT_KERNEL(grid_mask, GridMaskArgs, run)
