// SPDX-License-Identifier: Apache-2.0
// Windows and sizes by torchvision's rules, for a whole batch. In shapes (n, ndim), `first` is the axis of the height;
// the width comes next.
#include <algorithm>

#include "core/program.h"
#include "random/draws.h"

// Centered windows of a given size. Half pixels are rounded to even if samples are cropped, outwards if they are
// padded. Fills `start` and `extent` (n, ndim).
EXPORT void centered_windows(const int64_t *shape, int64_t n, int32_t ndim, int32_t first, int64_t height,
                             int64_t width, int64_t *start, int64_t *extent) {
  const int64_t size[2] = {height, width};
  for (int64_t i = 0; i < n; i++)
    for (int32_t d = 0; d < ndim; d++) {
      const int64_t j = i * ndim + d, k = d - first;
      const bool cut = k == 0 || k == 1;
      const int64_t room = cut ? shape[j] - size[k] : 0;
      start[j] = room < 0 ? -((1 - room) / 2) : room / 2 + (room % 4 == 3);
      extent[j] = cut ? size[k] : shape[j];
    }
}
EXPORT_SHORT(centered_windows)
EXPORT_INSTRUCTION(centered_windows)

// Windows that exceed samples by a margin on each side. Fills `start` and `extent` (n, ndim).
EXPORT void grown_windows(const int64_t *shape, int64_t n, int32_t ndim, int32_t first, int64_t left, int64_t top,
                          int64_t right, int64_t bottom, int64_t *start, int64_t *extent) {
  const int64_t before[2] = {top, left}, around[2] = {top + bottom, left + right};
  for (int64_t i = 0; i < n; i++)
    for (int32_t d = 0; d < ndim; d++) {
      const int64_t j = i * ndim + d, k = d - first;
      const bool grown = k == 0 || k == 1;
      start[j] = grown ? -before[k] : 0;
      extent[j] = shape[j] + (grown ? around[k] : 0);
    }
}
EXPORT_SHORT(grown_windows)
EXPORT_INSTRUCTION(grown_windows)

// Windows of a given size at uniformly random positions in samples that are padded by a margin on each side.
// `if_needed` pads samples that are still too small, on both sides. Fills `start` and `extent` (n, ndim). Returns the
// number of samples that are too small.
EXPORT int64_t random_places(uint64_t key, const uint32_t *epoch, const uint64_t *position, const int64_t *shape,
                             int64_t n, int32_t ndim, int32_t first, int64_t height, int64_t width, int64_t left,
                             int64_t top, int64_t right, int64_t bottom, int32_t if_needed, int64_t *start,
                             int64_t *extent) {
  const int64_t size[2] = {height, width}, before[2] = {top, left}, around[2] = {top + bottom, left + right};
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    Draws draws(key, position[i], epoch[i]);
    bool fits = true;
    for (int32_t d = 0; d < ndim; d++) {
      const int64_t j = i * ndim + d, k = d - first;
      start[j] = 0, extent[j] = shape[j];
      if (k != 0 && k != 1) continue;
      int64_t room = shape[j] + around[k] - size[k], offset = before[k];
      if (if_needed && room < 0) offset -= room, room = -room;
      fits &= room >= 0;
      extent[j] = size[k];
      start[j] = (room > 0 ? draws.below(room + 1) : (draws.unit(), 0)) - offset;
    }
    bad += !fits;
  }
  return bad;
}
EXPORT_SHORT(random_places)
EXPORT_INSTRUCTION(random_places)

// Heights and widths (n, 2) of samples whose shorter edge becomes `edge` and whose longer edge at most `limit`. If
// `edge` is 0, the longer edge becomes `limit`; if `limit` is 0, there is none. Truncated to integers; at least 1.
EXPORT void edge_sizes(const int64_t *shape, int64_t n, int32_t ndim, int32_t first, int64_t edge, int64_t limit,
                       float *size) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t height = shape[i * ndim + first], width = shape[i * ndim + first + 1];
    const int64_t shorter = std::max<int64_t>(std::min(height, width), 1);
    const int64_t longer = std::max<int64_t>(std::max(height, width), 1);
    int64_t low = edge, high = edge * longer / shorter;
    if (!edge)
      low = limit * shorter / longer, high = limit;
    else if (limit && high > limit)
      low = limit * low / high, high = limit;
    low = std::max<int64_t>(low, 1), high = std::max<int64_t>(high, 1);
    size[i * 2] = (float)(height <= width ? low : high);
    size[i * 2 + 1] = (float)(height <= width ? high : low);
  }
}
EXPORT_SHORT(edge_sizes)
EXPORT_INSTRUCTION(edge_sizes)
