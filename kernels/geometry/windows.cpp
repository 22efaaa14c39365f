// SPDX-License-Identifier: Apache-2.0
// Where windows lie, for a whole batch, before there are pixels: columns in, columns out.
#include <algorithm>
#include <cmath>

#include "core/program.h"

// Places windows along one axis `d` of samples of these shapes: `size` (n), cut to integers, zero or less keeping the
// axis whole, as is null; at `position` (n) of the room that is left, 0 to 1, rounded to the nearest (halves away from
// zero) or truncated. Fills column d of `start` and `extent` (n, ndim). Returns how many positions are outside of [0,
// 1], or sizes not finite.
EXPORT int64_t crop_windows(const int64_t *shape, int64_t n, int32_t ndim, int32_t d, const float *size,
                            const float *position, int32_t truncate, int64_t *start, int64_t *extent) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t j = i * ndim + d;
    constexpr float kHuge = 1e15f;  // larger than any image, and far from where integers end
    extent[j] = size && size[i] >= 1 ? (int64_t)(size[i] < kHuge ? size[i] : kHuge) : shape[j];
    if (!(position[i] >= 0 && position[i] <= 1) || (size && !std::isfinite(size[i]))) {
      bad++;
      continue;
    }
    double place = (double)position[i] * (double)(shape[j] - extent[j]);
    start[j] = (int64_t)std::trunc(truncate ? place : place + std::copysign(0.5, place));
  }
  return bad;
}
EXPORT_SHORT(crop_windows)
EXPORT_INSTRUCTION(crop_windows)

// The parts of samples that lie in windows of them: all arrays have `count` elements.
EXPORT void parts_inside(const int64_t *start, const int64_t *extent, const int64_t *shape, int64_t count,
                         int64_t *origin, int64_t *size) {
  for (int64_t i = 0; i < count; i++) {
    origin[i] = std::clamp<int64_t>(start[i], 0, shape[i]);
    size[i] = std::max<int64_t>(std::clamp<int64_t>(start[i] + extent[i], 0, shape[i]) - origin[i], 0);
  }
}
EXPORT_SHORT(parts_inside)
EXPORT_INSTRUCTION(parts_inside)

// Where a kernel begins to read: per axis of the output, the index of the input's stored window, which begins at
// `origin`, that the first element of a window at `start` comes from (n, k). `axes` (k) are the axes of the input in
// the order of the output. Where `mirror` (n, or null) is not 0, axis `width` of the output, `extent` (n, k) long, goes
// backwards: `mirrored` (n) receives its number, or -1.
EXPORT void first_elements(const int64_t *start, const int64_t *origin, int64_t n, const int32_t *axes, int32_t k,
                           const int32_t *mirror, int32_t width, const int64_t *extent, int64_t *first,
                           int32_t *mirrored) {
  for (int64_t i = 0; i < n; i++) {
    for (int32_t j = 0; j < k; j++) first[i * k + j] = start[i * k + axes[j]] - origin[i * k + axes[j]];
    if (!mirror) continue;
    mirrored[i] = mirror[i] ? width : -1;
    if (mirror[i]) first[i * k + width] += extent[i * k + width] - 1;
  }
}
EXPORT_SHORT(first_elements)
EXPORT_INSTRUCTION(first_elements)

// Where windows begin in mirrored samples: `flip`, `shape`, `origin`, `stored` and `out` have `count` elements.
EXPORT void mirrored_windows(const uint8_t *flip, const int64_t *shape, const int64_t *origin, const int64_t *stored,
                             int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++) out[i] = flip[i] ? shape[i] - origin[i] - stored[i] : origin[i];
}
EXPORT_SHORT(mirrored_windows)
EXPORT_INSTRUCTION(mirrored_windows)

// The frames of a sample, which are neighbours, get one extent: the largest, odd if more than half of them would have
// it odd.
EXPORT void agree_on_canvas(const int32_t *sample_of, int64_t n, const int64_t *extent, const int64_t *odd,
                            int64_t *largest, int64_t *is_odd) {
  for (int64_t begin = 0, end; begin < n; begin = end) {
    int64_t most = 0, votes = 0;
    for (end = begin; end < n && sample_of[end] == sample_of[begin]; end++)
      most = std::max(most, extent[end]), votes += odd[end] ? 1 : -1;
    for (int64_t i = begin; i < end; i++) largest[i] = most, is_odd[i] = votes > 0;
  }
}
EXPORT_SHORT(agree_on_canvas)
EXPORT_INSTRUCTION(agree_on_canvas)
