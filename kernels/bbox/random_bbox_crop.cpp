// SPDX-License-Identifier: Apache-2.0
#include "bbox/random_bbox_crop.h"

#include <algorithm>

#include "core/kernel.h"
#include "random/draws.h"

namespace {

constexpr double kOutside = 1e-5;   // tolerance for boxes outside of [0, 1] due to rounding
constexpr double kRounding = 1e-5;  // relative tolerance for aspect ratios

typedef RandomBboxCropArgs Args;

bool is_inside(double x) { return x >= -kOutside && x <= 1 + kOutside; }

template <int kDims>
struct Box {
  double low[kDims], high[kDims], volume;
  void measure() {
    volume = 1;
    for (int d = 0; d < kDims; d++) volume *= high[d] - low[d];
  }
  bool holds_centre_of(const Box &b) const {
    for (int d = 0; d < kDims; d++) {
      const double centre = (b.low[d] + b.high[d]) / 2;
      if (!(centre >= low[d] && centre <= high[d])) return false;
    }
    return true;
  }
};

// The share of the box inside the window, or intersection over union.
template <int kDims>
double metric(const Box<kDims> &window, const Box<kDims> &box, bool share) {
  double both = 1;
  for (int d = 0; d < kDims; d++)
    both *= std::max(std::min(window.high[d], box.high[d]) - std::max(window.low[d], box.low[d]), 0.0);
  const double of_all = share ? box.volume : box.volume + window.volume - both;
  if (of_all > 0) return both / of_all;
  return window.holds_centre_of(box);
}

template <int kDims>
bool is_kept(const Box<kDims> &window, const Box<kDims> &box, const Args &a) {
  if (a.prune < 0) return window.holds_centre_of(box);
  const double share = metric(window, box, true);
  return share > 0 && share >= a.prune;
}

// Draws the extents of a window relative to the image. Returns false if the aspect ratio is not allowed.
template <int kDims>
bool draw_extents(const Args &a, Draws &draws, double *extent) {
  for (int d = 0; d < kDims; d++) extent[d] = draws.between(a.scaling[0], a.scaling[1]) * a.input[d];
  constexpr int pairs = kDims * (kDims - 1) / 2;
  constexpr int kFirst[] = {0, 0, 1}, kSecond[] = {1, 2, 2};
  // If only one ratio is allowed, the longer side is kept.
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
  for (int d = 0; d < kDims; d++) largest = std::max(largest, extent[d] /= a.input[d]);
  // If only one ratio is allowed and the image is not square, the window may have to shrink to fit.
  const double limit = std::max(1.0, (double)a.scaling[1]);
  if (largest > limit)
    for (int d = 0; d < kDims; d++) extent[d] *= limit / largest;
  return allowed;
}

// Draws a window. `anchor` and `shape` are its outputs for the user.
template <int kDims>
bool draw_window(const Args &a, Draws &draws, Box<kDims> &window, float *anchor, float *shape) {
  double extent[kDims];
  if (!a.has_crop && !draw_extents<kDims>(a, draws, extent)) return false;
  for (int d = 0; d < kDims; d++) {
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
    if (extent[d] <= 1) shape[d] = std::min(shape[d], 1 - anchor[d]);  // float32 rounding must not exceed 1
    window.low[d] = anchor[d];
    window.high[d] = anchor[d] + (double)shape[d];
  }
  window.measure();
  return true;
}

template <int kDims>
class Search {
 public:
  typedef ::Box<kDims> Box;
  Search(const Args &a, const float *boxes, int64_t n, Box *memory) : a_(a), boxes_(memory), n_(n) {
    for (int64_t i = 0; i < n; i++) {
      const float *numbers = boxes + 2 * kDims * i;
      for (int d = 0; d < kDims; d++) {
        const double low = numbers[a.start[d]], end = numbers[a.end[d]], high = a.sizes ? low + end : end;
        if (!is_inside(low) || !is_inside(high))
          fail("box %lld reaches from %g to %g along %c; boxes must be inside of [0, 1], relative to the image",
               (long long)i, low, high, "xyz"[d]);
        boxes_[i].low[d] = std::clamp(low, 0.0, 1.0);
        boxes_[i].high[d] = std::clamp(high, 0.0, 1.0);
      }
      boxes_[i].measure();
    }
  }

  // Finds a window. Returns false if the whole image is used.
  bool run(Draws &draws, Box &window, float *anchor, float *shape) {
    double best = -1;
    for (int64_t total = 0; total < a_.total_attempts;) {
      const int64_t choice = draws.below(a_.n_thresholds + a_.no_crop);
      if (choice == a_.n_thresholds) return false;
      for (int64_t k = 0; k < a_.attempts && total < a_.total_attempts; k++, total++) {
        Box candidate;
        float from[kDims], extent[kDims];
        if (!draw_window(a_, draws, candidate, from, extent)) continue;
        const double least = a_.thresholds[choice], seen = n_ ? worst_or_best(candidate, least, best) : 1;
        const bool found = n_ == 0 || seen >= least && keeps_any(candidate);
        if (!found && !(seen > best)) continue;
        best = seen;
        window = candidate;
        std::copy(from, from + kDims, anchor);
        std::copy(extent, extent + kDims, shape);
        if (found) return true;
      }
    }
    return best >= 0;
  }

 private:
  // The smallest metric of all boxes if all_boxes, else the largest. The search for the smallest stops early once it is
  // below `least` and not above `best`: the window is then neither accepted nor the best so far.
  double worst_or_best(const Box &window, double least, double best) const {
    double seen = metric(window, boxes_[0], a_.overlap);
    if (!a_.all_boxes) {
      for (int64_t i = 1; i < n_; i++) seen = std::max(seen, metric(window, boxes_[i], a_.overlap));
      return seen;
    }
    for (int64_t i = 1; i < n_ && (seen >= least || seen > best); i++)
      seen = std::min(seen, metric(window, boxes_[i], a_.overlap));
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

// Writes the box relative to the window, in the layout of the input.
template <int kDims>
void write_box(const Args &a, const Box<kDims> &window, const Box<kDims> &box, float *out) {
  for (int d = 0; d < kDims; d++) {
    const double extent = window.high[d] - window.low[d];
    const double low = std::clamp((box.low[d] - window.low[d]) / extent, 0.0, 1.0);
    const double high = std::clamp((box.high[d] - window.low[d]) / extent, 0.0, 1.0);
    out[a.start[d]] = (float)low;
    out[a.end[d]] = (float)(a.sizes ? high - low : high);
  }
}

template <int kDims>
void crop(Tensor *out, const Tensor *in, const Args &a, Scratch &scratch) {
  const int64_t n = in[0].shape[0], numbers = 2 * kDims;
  const float *boxes = in[0].as<float>();
  float *anchor = out[0].as<float>(), *shape = out[1].as<float>(), *kept = out[2].as<float>();
  for (int d = 0; d < kDims; d++)
    if (!(a.input[d] >= 1) || a.has_crop && !(a.crop[d] >= 1))
      fail("input_shape and crop_shape must be positive; got %g and %g along %c", a.input[d],
           a.has_crop ? a.crop[d] : 1.0f, "xyz"[d]);
  const Tensor *labels = a.has_labels ? out + 3 : nullptr, *indices = a.has_indices ? out + 3 + a.has_labels : nullptr;
  const int64_t label_width = a.has_labels && n ? in[1].volume() / n : 0;
  Box<kDims> *memory = scratch.array<Box<kDims>>(n), window;
  Search<kDims> search(a, boxes, n, memory);
  Draws draws(a.key, a.position, a.epoch);
  const bool crops = search.run(draws, window, anchor, shape);
  if (!crops) std::fill(anchor, anchor + kDims, 0.0f), std::fill(shape, shape + kDims, 1.0f);
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
  for (int t = 2; t < 3 + a.has_labels + a.has_indices; t++) out[t].shape[0] = count;
}

void run(Tensor *out, const Tensor *in, const Args &a, Scratch &scratch) {
  a.dims == 3 ? crop<3>(out, in, a, scratch) : crop<2>(out, in, a, scratch);
}

}  // namespace

EXPORT_KERNEL(random_bbox_crop, RandomBboxCropArgs, run)
