// SPDX-License-Identifier: Apache-2.0
// Sizes and windows of a whole batch, computed before there are pixels: columns in, columns out.
#include <cmath>
#include <utility>

#include "core/program.h"
#include "resample/resample.h"

namespace {

// How sizes are computed; in the order of penstock.operators.geometry._resize_size.
enum Mode : int32_t { kDefault, kStretch, kNotLarger, kNotSmaller };
enum Problem : int32_t { kNone, kSize, kRegion, kTooLarge };
constexpr float kLargest = 1 << 30;   // pixels along an axis
constexpr float kFarthest = 1 << 24;  // largest distance in pixels of a region's ends from the origin

// Computes the extents before rounding. Sizes and their ratios are in single precision, means and limits of ratios in
// double precision, as in DALI, as the last bit may decide which pixel is the nearest. `wanted`: 0 if absent. `region`:
// extents of the region. `limit`: null, or infinity where there is no limit.
void real_extents(const float *wanted, const float *region, const bool *empty, const float *limit, int k, int mode,
                  float *real) {
  int count = 0;
  double product = 1, least = INFINITY, most = 0;
  for (int d = 0; d < k; d++) {
    if (!(wanted[d] > 0) || empty[d]) continue;
    float scale = wanted[d] / region[d];
    count++;
    product *= scale;
    least = std::fmin(least, (double)scale);
    most = std::fmax(most, (double)scale);
  }
  if (mode == kDefault || mode == kStretch) {
    double factor = mode == kStretch ? 1 : count == 2 ? std::sqrt(product) : product;
    for (int d = 0; d < k; d++) {
      real[d] = wanted[d] > 0 && !empty[d] ? wanted[d] : region[d] > 0 ? (float)(region[d] * factor) : 0;
      if (limit) real[d] = std::fmin(real[d], limit[d]);
    }
  } else {
    double factor = mode == kNotLarger ? least : most;
    for (int d = 0; limit && d < k; d++)
      if (region[d] > 0) factor = std::fmin(factor, (double)limit[d] / region[d]);
    for (int d = 0; d < k; d++) {
      // What was asked for is not multiplied, which might round it to the other side of a half.
      const bool is_asked = wanted[d] > 0 && !empty[d] && wanted[d] / region[d] == factor;
      real[d] = is_asked ? wanted[d] : region[d] > 0 ? (float)(region[d] * factor) : 0;
    }
  }
  for (int d = 0; d < k && !count; d++) real[d] = region[d];
}

}  // namespace

// Computes the sizes (n, k) of resized images, and the regions of interest `start`, `end` (n, k) that they show: see
// penstock.operators.geometry._resize_size. `shape` (n, ndim): shapes of the inputs, whose k axes from `first` on are
// resized. `wanted` (n, k): requested extents (0: absent, negative: flipped). `roi_start`, `roi_end` (n, k): the
// region; null for the whole image. `limit`: (k) or null.
// `problem` (n, or null): not 0 if a sample cannot be resized. 1: its size is not finite; 2: the region, in `start` and
// `end`, is not; 3: the output is too large, with its size in `start`. Returns the number of such samples.
EXPORT int64_t resize_plan(const int64_t *shape, int64_t n, int32_t ndim, int32_t first, int32_t k, const float *wanted,
                           const float *roi_start, const float *roi_end, int32_t roi_relative, const float *limit,
                           int32_t mode, int32_t subpixel, int64_t *size, double *start, double *end,
                           int32_t *problem) {
  int64_t problems = 0;
  for (int64_t i = 0; i < n; i++, wanted += k, size += k, start += k, end += k) {
    const int64_t *extent = shape + i * ndim + first;
    float want[kMaxDims], region[kMaxDims], real[kMaxDims];
    bool empty[kMaxDims];
    int wrong = kNone;
    for (int d = 0; d < k; d++) {
      float from = 0, to = (float)extent[d];
      if (roi_start) {
        from = roi_start[i * k + d], to = roi_end[i * k + d];
        if (roi_relative) from *= (float)extent[d], to *= (float)extent[d];
        if (!(std::fabs(from) <= kFarthest && std::fabs(to) <= kFarthest)) wrong = kRegion;
      }
      start[d] = from, end[d] = to;
      region[d] = std::fabs(to - from);
      want[d] = std::fabs(wanted[d]);
      empty[d] = extent[d] == 0;
    }
    for (int d = 0; d < k; d++)
      if (!std::isfinite(wanted[d])) wrong = kSize;
    if (!wrong) {
      real_extents(want, region, empty, limit, k, mode, real);
      for (int d = 0; d < k; d++)
        if (!(real[d] <= kLargest)) wrong = kTooLarge;
    }
    if (problem) problem[i] = wrong;
    if (wrong) {
      if (wrong == kTooLarge)
        for (int d = 0; d < k; d++) start[d] = real[d];
      problems++;
      continue;
    }
    for (int d = 0; d < k; d++) {
      float whole = std::floor(real[d] + 0.5f);
      size[d] = empty[d] ? 0 : whole > 1 ? (int64_t)whole : 1;
      // As in DALI, a reversed region flips only axes with a requested extent.
      bool forward = (mode == kDefault || mode == kStretch) && wanted[d] == 0 && start[d] > end[d];
      if (forward || wanted[d] < 0) std::swap(start[d], end[d]);
      if (!subpixel) continue;
      // The part of the region that the rounded size shows. As in DALI, the unrounded size is at least a tenth of a
      // pixel, and the region is in single precision.
      double shown = real[d] > 0 ? (double)size[d] / (double)std::fmax(real[d], 0.1f) : 1;
      double middle = (start[d] + end[d]) / 2, half = (end[d] - start[d]) / 2 * shown;
      start[d] = (float)(middle - half), end[d] = (float)(middle + half);
    }
  }
  return problems;
}
EXPORT_SHORT(resize_plan)
EXPORT_INSTRUCTION(resize_plan)

// Computes the windows `origin`, `extent` (n, ndim) of the inputs that windows of the outputs need. The k axes from
// `first` on are resampled from `start`, `end` to `size` (n, k each), of which the windows `at`, `stored` (n, k) are
// needed. Other axes are whole.
EXPORT void resample_windows(const int64_t *shape, int64_t n, int32_t ndim, int32_t first, int32_t k,
                             const double *start, const double *end, const int64_t *size, const int32_t *min_filter,
                             const int32_t *mag_filter, int32_t antialias, int32_t rule, const int64_t *at,
                             const int64_t *stored, int64_t *origin, int64_t *extent) {
  for (int64_t i = 0; i < n; i++) {
    ResampleArgs a{};
    a.min_filter = min_filter[i], a.mag_filter = mag_filter[i], a.antialias = antialias, a.rule = rule;
    for (int d = 0; d < ndim; d++) origin[i * ndim + d] = 0, extent[i * ndim + d] = shape[i * ndim + d];
    a.n_axes = k;
    for (int d = 0; d < k; d++) {
      int64_t j = i * k + d;
      a.roi_start[d] = start[j], a.roi_end[d] = end[j], a.in_size[d] = shape[i * ndim + first + d];
      a.out_size[d] = size[j];
    }
    for (int d = 0; d < k; d++) {
      int64_t j = i * k + d, lo = 0, hi = 0, at_input = i * ndim + first + d;
      if (stored[j] > 0 && a.in_size[d] > 0) source_range(resample_axis(a, d), at[j], at[j] + stored[j], &lo, &hi);
      origin[at_input] = lo, extent[at_input] = hi - lo;
    }
  }
}
EXPORT_SHORT(resample_windows)
EXPORT_INSTRUCTION(resample_windows)

// Whether the widest filter has at most `most` taps along all axes of n samples.
EXPORT int32_t few_taps(const ResampleArgs *args, int64_t n, int64_t most) {
  for (const ResampleArgs *a = args; a < args + n; a++)
    for (int d = 0; d < a->n_axes; d++) {
      const double size = (double)a->out_size[d];
      if (size > 0 && 2 * 3 * std::abs(a->roi_end[d] - a->roi_start[d]) / size + 1 > (double)most) return 0;
    }
  return 1;
}
EXPORT_SHORT(few_taps)
EXPORT_INSTRUCTION(few_taps)
