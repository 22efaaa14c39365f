// SPDX-License-Identifier: Apache-2.0
#include "bbox/random_bbox_crop.h"

#include <algorithm>

#include "core/kernel.h"
#include "random/draws.h"

namespace {

constexpr double kOutside = 1e-5;   // of the image: what rounding alone may put outside of it
constexpr double kRounding = 1e-5;  // of an aspect ratio

typedef RandomBboxCropArgs Args;

bool is_inside(double x) { return x >= -kOutside && x <= 1 + kOutside; }

struct Box {
  double low[3], high[3];
  double volume(int dims) const {
    double v = 1;
    for (int d = 0; d < dims; d++) v *= high[d] - low[d];
    return v;
  }
  bool holds_centre_of(const Box &b, int dims) const {
    for (int d = 0; d < dims; d++) {
      const double centre = (b.low[d] + b.high[d]) / 2;
      if (!(centre >= low[d] && centre <= high[d])) return false;
    }
    return true;
  }
};

// The share of the box that is inside of the window, or intersection over union.
double metric(const Box &window, const Box &box, int dims, bool share) {
  double both = 1;
  for (int d = 0; d < dims; d++)
    both *= std::max(std::min(window.high[d], box.high[d]) - std::max(window.low[d], box.low[d]), 0.0);
  const double of_box = box.volume(dims), of_all = share ? of_box : of_box + window.volume(dims) - both;
  if (of_all > 0) return both / of_all;
  return window.holds_centre_of(box, dims);
}

bool is_kept(const Box &window, const Box &box, const Args &a) {
  if (a.prune < 0) return window.holds_centre_of(box, a.dims);
  const double share = metric(window, box, a.dims, true);
  return share > 0 && share >= a.prune;
}

// The extents of a window, relative to the image; false if they have no allowed aspect ratio.
bool draw_extents(const Args &a, Draws &draws, double *extent) {
  for (int d = 0; d < a.dims; d++) extent[d] = draws.between(a.scaling[0], a.scaling[1]) * a.input[d];
  const int pairs = a.dims * (a.dims - 1) / 2;
  constexpr int kFirst[] = {0, 0, 1}, kSecond[] = {1, 2, 2};
  // Where only one ratio is allowed, the longer side decides.
  for (int p = 0; p < pairs; p++) {
    const double ratio = a.aspect[2 * p];
    if (a.aspect[2 * p + 1] != ratio) continue;
    double &x = extent[kFirst[p]], &y = extent[kSecond[p]];
    const double longer = std::max(x, y);
    x = ratio >= 1 ? longer : longer * ratio;
    y = ratio >= 1 ? longer / ratio : longer;
  }
  bool allowed = true;
  for (int p = 0; p < pairs; p++) {
    const double ratio = extent[kFirst[p]] / extent[kSecond[p]];
    allowed &= ratio >= a.aspect[2 * p] * (1 - kRounding) && ratio <= a.aspect[2 * p + 1] * (1 + kRounding);
  }
  double largest = 0;
  for (int d = 0; d < a.dims; d++) largest = std::max(largest, extent[d] /= a.input[d]);
  // Of an image that is not square, a window of the one ratio that is allowed may have to be shrunk to fit.
  const double limit = std::max(1.0, (double)a.scaling[1]);
  if (largest > limit)
    for (int d = 0; d < a.dims; d++) extent[d] *= limit / largest;
  return allowed;
}

// A window; `anchor` and `shape` are what the user gets to know of it.
bool draw_window(const Args &a, Draws &draws, Box &window, float *anchor, float *shape) {
  double extent[3];
  if (!a.has_crop && !draw_extents(a, draws, extent)) return false;
  for (int d = 0; d < a.dims; d++) {
    if (a.has_crop) {
      const int64_t room = (int64_t)a.input[d] - (int64_t)a.crop[d];
      anchor[d] = (float)(std::min<int64_t>(room, 0) + draws.below(std::abs(room) + 1));
      shape[d] = a.crop[d];
      window.low[d] = anchor[d] / (double)a.input[d];
      window.high[d] = (anchor[d] + (double)a.crop[d]) / a.input[d];
      continue;
    }
    anchor[d] = (float)(draws.unit() * (1 - extent[d]));
    shape[d] = (float)extent[d];
    if (extent[d] <= 1) shape[d] = std::min(shape[d], 1 - anchor[d]);  // float32 must not round it out of the image
    window.low[d] = anchor[d];
    window.high[d] = anchor[d] + (double)shape[d];
  }
  return true;
}

class Search {
 public:
  Search(const Args &a, const float *boxes, int64_t n, Box *memory) : a_(a), boxes_(memory), n_(n) {
    for (int64_t i = 0; i < n; i++) {
      const float *numbers = boxes + 2 * a.dims * i;
      for (int d = 0; d < a.dims; d++) {
        const double low = numbers[a.start[d]], end = numbers[a.end[d]], high = a.sizes ? low + end : end;
        if (!is_inside(low) || !is_inside(high))
          fail("box %lld reaches from %g to %g along %c; boxes must be inside of [0, 1], relative to the image",
               (long long)i, low, high, "xyz"[d]);
        boxes_[i].low[d] = std::clamp(low, 0.0, 1.0);
        boxes_[i].high[d] = std::clamp(high, 0.0, 1.0);
      }
    }
  }

  // Finds a window; false: the whole image it is.
  bool run(Draws &draws, Box &window, float *anchor, float *shape) {
    double best = -1;
    for (int64_t total = 0; total < a_.total_attempts;) {
      const int64_t choice = draws.below(a_.n_thresholds + a_.no_crop);
      if (choice == a_.n_thresholds) return false;
      for (int64_t k = 0; k < a_.attempts && total < a_.total_attempts; k++, total++) {
        Box candidate;
        float from[3], extent[3];
        if (!draw_window(a_, draws, candidate, from, extent)) continue;
        const double seen = n_ ? worst_or_best(candidate) : 1;
        const bool found = n_ == 0 || seen >= a_.thresholds[choice] && keeps_any(candidate);
        if (!found && !(seen > best)) continue;
        best = seen;
        window = candidate;
        std::copy(from, from + a_.dims, anchor);
        std::copy(extent, extent + a_.dims, shape);
        if (found) return true;
      }
    }
    return best >= 0;
  }

 private:
  double worst_or_best(const Box &window) const {
    double seen = metric(window, boxes_[0], a_.dims, a_.overlap);
    for (int64_t i = 1; i < n_; i++) {
      const double m = metric(window, boxes_[i], a_.dims, a_.overlap);
      seen = a_.all_boxes ? std::min(seen, m) : std::max(seen, m);
    }
    return seen;
  }
  bool keeps_any(const Box &window) const {
    for (int64_t i = 0; i < n_; i++)
      if (is_kept(window, boxes_[i], a_)) return true;
    return false;
  }

  const Args &a_;
  Box *boxes_;
  int64_t n_;
};

// The box as seen in the window, in the form of the input.
void write_box(const Args &a, const Box &window, const Box &box, float *out) {
  for (int d = 0; d < a.dims; d++) {
    const double extent = window.high[d] - window.low[d];
    const double low = std::clamp((box.low[d] - window.low[d]) / extent, 0.0, 1.0);
    const double high = std::clamp((box.high[d] - window.low[d]) / extent, 0.0, 1.0);
    out[a.start[d]] = (float)low;
    out[a.end[d]] = (float)(a.sizes ? high - low : high);
  }
}

void run(const Tensor *out, const Tensor *in, const Args &a, Scratch &scratch) {
  const int64_t n = in[0].shape[0], numbers = 2 * a.dims;
  const float *boxes = in[0].as<float>();
  float *anchor = out[0].as<float>(), *shape = out[1].as<float>(), *kept = out[3].as<float>();
  for (int d = 0; d < a.dims; d++)
    if (!(a.input[d] >= 1) || a.has_crop && !(a.crop[d] >= 1))
      fail("input_shape and crop_shape must be positive; got %g and %g along %c", a.input[d],
           a.has_crop ? a.crop[d] : 1.0f, "xyz"[d]);
  const Tensor *labels = a.has_labels ? out + 4 : nullptr, *indices = a.has_indices ? out + 4 + a.has_labels : nullptr;
  const int64_t label_width = a.has_labels && n ? in[1].volume() / n : 0;
  Box *memory = scratch.array<Box>(n);
  Search search(a, boxes, n, memory);
  Draws draws(a.key, a.position, a.epoch);
  Box window;
  const bool crops = search.run(draws, window, anchor, shape);
  if (!crops) std::fill(anchor, anchor + a.dims, 0.0f), std::fill(shape, shape + a.dims, 1.0f);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    if (crops && !is_kept(window, memory[i], a)) continue;
    if (crops)
      write_box(a, window, memory[i], kept + numbers * count);
    else
      std::copy(boxes + numbers * i, boxes + numbers * (i + 1), kept + numbers * count);
    if (labels) {
      const int32_t *from = in[1].as<int32_t>() + label_width * i;
      std::copy(from, from + label_width, labels->as<int32_t>() + label_width * count);
    }
    if (indices) indices->as<int32_t>()[count] = (int32_t)i;
    count++;
  }
  out[2].as<int64_t>()[0] = count;
}

}  // namespace

EXPORT_KERNEL(random_bbox_crop, RandomBboxCropArgs, run)
