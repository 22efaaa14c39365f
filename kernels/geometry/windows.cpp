// SPDX-License-Identifier: Apache-2.0
// Positions of windows for a whole batch, computed before there are pixels: columns in, columns out.
#include <algorithm>
#include <cmath>

#include "core/program.h"

// Places windows along axis `d` of samples. `size` (n) is truncated to integers; zero or less, or null, keeps the axis
// whole. `position` (n), 0 to 1: share of the remaining room before the window. Starts are rounded to the nearest
// (halves away from zero) or truncated. Fills column d of `start` and `extent` (n, ndim). Returns the number of samples
// whose position is outside of [0, 1] or whose size is not finite.
EXPORT int64_t crop_windows(const int64_t *shape, int64_t n, int32_t ndim, int32_t d, const float *size,
                            const float *position, int32_t truncate, int64_t *start, int64_t *extent) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t j = i * ndim + d;
    constexpr float kHuge = 1e15f;  // larger than any image, and far below the largest integer
    const bool is_cropped = size && size[i] >= 1;
    extent[j] = is_cropped ? (int64_t)(size[i] < kHuge ? size[i] : kHuge) : shape[j];
    // As in DALI, the position of what is not cropped may be anything.
    if ((size && !std::isfinite(size[i])) || (is_cropped && !(position[i] >= 0 && position[i] <= 1))) {
      bad++;
      continue;
    }
    if (!is_cropped) continue;
    double place = (double)position[i] * (double)(shape[j] - extent[j]);
    start[j] = (int64_t)std::trunc(truncate ? place : place + std::copysign(0.5, place));
  }
  return bad;
}
EXPORT_SHORT(crop_windows)
EXPORT_INSTRUCTION(crop_windows)

// Intersections of samples with their windows. All arrays have `count` elements.
EXPORT void parts_inside(const int64_t *start, const int64_t *extent, const int64_t *shape, int64_t count,
                         int64_t *origin, int64_t *size) {
  for (int64_t i = 0; i < count; i++) {
    origin[i] = std::clamp<int64_t>(start[i], 0, shape[i]);
    size[i] = std::max<int64_t>(std::clamp<int64_t>(start[i] + extent[i], 0, shape[i]) - origin[i], 0);
  }
}
EXPORT_SHORT(parts_inside)
EXPORT_INSTRUCTION(parts_inside)

// Where a kernel begins to read. `first` (n, k): per axis of the output, the index in the input's stored window, which
// begins at `origin`, of the first element of a window at `start`. `axes` (k): the axes of the input in the order of
// the output. Where `mirror` (n, or null) is not 0, axis `width` of the output, of the length in `extent` (n, k), runs
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

// Begins of windows in mirrored samples. `flip`, `shape`, `origin`, `stored` and `out` have `count` elements.
EXPORT void mirrored_windows(const uint8_t *flip, const int64_t *shape, const int64_t *origin, const int64_t *stored,
                             int64_t count, int64_t *out) {
  for (int64_t i = 0; i < count; i++) out[i] = flip[i] ? shape[i] - origin[i] - stored[i] : origin[i];
}
EXPORT_SHORT(mirrored_windows)
EXPORT_INSTRUCTION(mirrored_windows)

// Gives all frames of a sample, which are adjacent, the same extent: the largest one, odd if more than half of the
// frames have an odd one.
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
