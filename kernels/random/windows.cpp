// SPDX-License-Identifier: Apache-2.0
// Random crop windows for a whole batch: columns in, columns out. Not parallel, as waking a thread takes longer than a
// sample.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/program.h"
#include "random/deviates.h"
#include "random/draws.h"

namespace {

struct Ranges {
  double smallest, largest;  // area of the window as a share of the image's area
  // Width / height. Compared and multiplied in float32, as they are given: 300 * 4 / 3 is 400.
  float narrow, wide;
  double low, span;  // the logarithm of `narrow`, and how much larger that of `wide` is
  Ranges(const double area[2], const double ratio[2])
      : smallest(area[0]),
        largest(area[1]),
        narrow((float)ratio[0]),
        wide((float)ratio[1]),
        low(log_positive(narrow)),
        span(log_positive(wide) - low) {}
};

// Height and width of a window in an image of h x w: the first of `attempts` random ones that is allowed, or else the
// largest with an allowed aspect ratio, shrunk to an allowed area.
void draw_size(Draws &draws, double h, double w, const Ranges &r, int32_t attempts, double size[2]) {
  const double widest = std::max(std::floor((float)h * r.wide), 1.f),
               tallest = std::max(std::floor((float)w / r.narrow), 1.f);
  const bool too_wide = h * widest < h * w * r.smallest, too_tall = w * tallest < h * w * r.smallest;
  for (int32_t k = 0; k < attempts && !too_wide && !too_tall; k++) {
    const double share = draws.unit(), turn = draws.unit();
    const double area = (r.smallest + (r.largest - r.smallest) * share) * h * w,
                 ratio = exp_near(r.low + r.span * turn);
    size[0] = std::max(std::nearbyint(std::sqrt(area / ratio)), 1.0);
    size[1] = std::max(std::nearbyint(std::sqrt(area * ratio)), 1.0);
    const float got = (float)(size[1] / size[0]);
    if (size[0] <= h && size[1] <= w && got >= r.narrow && got <= r.wide) return;
  }
  size[0] = std::min(h, tallest);
  size[1] = std::min(w, widest);
  const double most = r.largest * h * w / (size[0] * size[1]);
  const double shrink = too_wide || too_tall ? 1 : std::sqrt(std::min(1.0, most));
  for (int d = 0; d < 2; d++) size[d] = std::max(std::nearbyint(size[d] * shrink), 1.0);
}

}  // namespace

// Windows of random area and aspect ratio, as described in operators/geometry/_random_window.py, in n images whose
// height and width are elements `at_height` and `at_width` of the rows of `shape` (n, columns). Fills `origin` and
// `size` (n, 2), y first; zeros for images without pixels. Returns the number of images with a negative extent.
EXPORT int64_t random_windows(uint64_t key, const uint32_t *epoch, const uint64_t *position, int64_t n,
                              const int64_t *shape, int32_t columns, int32_t at_height, int32_t at_width,
                              const double *area, const double *ratio, int32_t attempts, int64_t *origin,
                              int64_t *size) {
  const Ranges ranges(area, ratio);
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t extent[2] = {shape[i * columns + at_height], shape[i * columns + at_width]};
    bad += extent[0] < 0 || extent[1] < 0;
    double chosen[2] = {0, 0};
    if (extent[0] > 0 && extent[1] > 0) {
      Draws draws(key, position[i], epoch[i]);
      draw_size(draws, (double)extent[0], (double)extent[1], ranges, attempts, chosen);
    }
    Draws place(key, position[i], epoch[i], 1);
    for (int d = 0; d < 2; d++) {
      const int64_t window = std::min((int64_t)chosen[d], extent[d]), room = extent[d] - window;
      size[2 * i + d] = window;
      origin[2 * i + d] = chosen[d] > 0 ? place.below(room + 1) : 0;
    }
  }
  return bad;
}
EXPORT_SHORT(random_windows)
EXPORT_INSTRUCTION(random_windows)

// The same as int32, for images whose height and width are the first two elements of `shapes`, vectors of integers.
EXPORT int64_t windows_of_shapes(uint64_t key, const uint32_t *epoch, const uint64_t *position, int64_t n,
                                 const Tensor *shapes, const double *area, const double *ratio, int32_t attempts,
                                 int32_t *origin, int32_t *size) {
  std::vector<int64_t> extents(2 * n), origins(2 * n), sizes(2 * n);
  for (int64_t i = 0; i < n; i++)
    for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>(shapes[i].dtype, [&](auto t) {
      for (int d = 0; d < 2; d++) extents[2 * i + d] = (int64_t)shapes[i].as<decltype(t)>()[d];
    });
  const int64_t bad = random_windows(key, epoch, position, n, extents.data(), 2, 0, 1, area, ratio, attempts,
                                     origins.data(), sizes.data());
  std::copy(origins.begin(), origins.end(), origin);
  std::copy(sizes.begin(), sizes.end(), size);
  return bad;
}
EXPORT_SHORT(windows_of_shapes)

// Begins of windows of the shape `crop` (n, k) that cover, or lie in, the regions of interest from `start` to `end` (if
// `end` is null: of the size `extent`). `out` (n, k): uniformly random among all possible ones. Windows stay inside of
// samples of `shape` (n, ndim >= k; int64 if `wide`, else int32), unless it is null. Returns the number of samples for
// which that is not possible.
EXPORT int64_t windows_about(uint64_t key, const uint32_t *epoch, const uint64_t *position, int64_t n, int32_t k,
                             const int32_t *crop, const int32_t *start, const int32_t *end, const int32_t *extent,
                             int32_t wide, const void *shape, int32_t ndim, int64_t *out) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    Draws draws(key, position[i], epoch[i]);
    bool possible = true;
    for (int64_t j = i * k; j < (i + 1) * k; j++) {
      const int64_t from = start[j], to = end ? end[j] : from + extent[j];
      int64_t low = std::min(from, to - crop[j]), high = std::max(from, to - crop[j]);
      possible &= crop[j] >= 0 && to >= from;
      if (shape) {
        const int64_t axis = i * ndim + (j - i * k);
        const int64_t whole = wide ? ((const int64_t *)shape)[axis] : ((const int32_t *)shape)[axis];
        possible &= crop[j] <= whole && from >= 0 && to <= whole;
        low = std::max<int64_t>(low, 0);
        high = std::min(high, whole - crop[j]);
      }
      out[j] = low + draws.below(high - low + 1);
    }
    bad += !possible;
  }
  return bad;
}
EXPORT_SHORT(windows_about)
