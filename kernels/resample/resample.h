// SPDX-License-Identifier: Apache-2.0
// Separable resampling: the input samples of an output sample, and their weights. Shared by CPU, GPU, and
// resample_windows (plan.cpp), which finds the region that is read.
#pragma once
#include "core/tensor.h"

// The values are those of types.DALIInterpType.
// BOX and NN_EXACT (PyTorch's nearest-exact) exist only by Pillow's and PyTorch's rules.
enum ResampleFilter : int32_t { NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN, BOX, NN_EXACT };

// The library whose pixels are reproduced. Pillow's and PyTorch's: CPU only, see resample/exact.h.
enum ResampleRule : int32_t { DALI_RULE, PILLOW_RULE, TORCH_RULE };

// Up to three adjacent axes, the outermost first. Sizes, regions of interest and coordinates are those of the whole
// image; the tensors may hold windows of it that begin at the origins. If a region's start is larger than its end, the
// axis is mirrored. With save_sizes, a second output receives in_size as int32.
struct ResampleArgs {
  double roi_start[3];
  double roi_end[3];
  int64_t in_size[3];
  int64_t out_size[3];
  int64_t in_origin[3];
  int64_t out_origin[3];
  int32_t first_axis, n_axes;
  int32_t min_filter, mag_filter;
  int32_t antialias;
  int32_t save_sizes;
  int32_t rule;
};

// An axis. Output j is at the input coordinate center + j * scale, where pixel i is at i.
struct ResampleAxis {
  double center, scale, stretch, radius;
  int64_t in_size, base;  // NN coordinates are relative to pixel `base`
  int32_t filter;
  bool adds_up;  // on the CPU: see added_coordinate
  // If the rule is not DALI's, pixels `base` .. base + extent - 1 are treated as a whole image.
  int32_t rule;
  bool antialias, mirrored;
  int64_t extent, out_size;
};

// Half the width of a filter's support at scale 1.
SHARED double filter_radius(int filter) { return filter == CUBIC ? 2 : filter == LANCZOS3 ? 3 : 1; }

SHARED double exact_radius(int filter) {
  return filter == CUBIC ? 2 : filter == LANCZOS3 ? 3 : filter == BOX || filter == NN || filter == NN_EXACT ? 0.5 : 1;
}

// The axis by the rules of Pillow and PyTorch, for which a region is an image that was cropped before.
SHARED ResampleAxis exact_axis(const ResampleArgs &a, int d) {
  ResampleAxis x{};
  x.rule = a.rule;
  x.mirrored = a.roi_start[d] > a.roi_end[d];
  const double low = x.mirrored ? a.roi_end[d] : a.roi_start[d], high = x.mirrored ? a.roi_start[d] : a.roi_end[d];
  const int64_t last = a.in_size[d] > 0 ? a.in_size[d] - 1 : 0, end = (int64_t)ceil(high);
  x.base = (int64_t)floor(low);
  x.base = x.base < 0 ? 0 : x.base > last ? last : x.base;
  x.extent = (end > a.in_size[d] ? a.in_size[d] : end) - x.base;
  if (x.extent < 1) x.extent = 1;
  x.out_size = a.out_size[d];
  x.center = low - (double)x.base;
  x.scale = (high - low) / (double)x.out_size;
  x.filter = (double)x.out_size < high - low ? a.min_filter : a.mag_filter;
  if (x.filter == TRIANGULAR) x.filter = LINEAR;
  x.antialias = a.antialias || a.rule == PILLOW_RULE;
  x.stretch = x.antialias && x.filter != NN && x.filter != NN_EXACT && x.scale > 1 ? x.scale : 1;
  x.radius = x.stretch * exact_radius(x.filter);
  x.in_size = a.in_size[d];
  return x;
}

// The first input of output j and the one after its last, within the region. PyTorch's filters without antialiasing use
// the neighbours of the coordinate, and repeat the border; the range contains these neighbours.
SHARED void exact_taps(const ResampleAxis &x, int64_t j, int64_t *first, int64_t *end) {
  const double c = x.center + ((double)(x.mirrored ? x.out_size - 1 - j : j) + 0.5) * x.scale;
  const double radius = x.antialias ? x.radius : x.radius + 1;
  int64_t lo = (int64_t)(c - radius + 0.5), hi = (int64_t)(c + radius + 0.5);
  if (lo < 0) lo = 0;
  if (x.filter == NN || x.filter == NN_EXACT) lo = lo > 2 ? lo - 2 : 0, hi += 2;  // other rounding: see exact.cpp
  if (hi > x.extent) hi = x.extent;
  if (lo > x.extent - 1) lo = x.extent - 1;
  *first = x.base + lo;
  *end = x.base + (hi > lo ? hi : lo + 1);
}

// The filter of an axis by DALI's rule. The extent of the region is in single precision, as then a scale of one is
// exactly one, however the region was computed.
SHARED int filter_of(const ResampleArgs &a, int d) {
  const float extent = (float)a.roi_end[d] - (float)a.roi_start[d];
  return (float)a.out_size[d] < (extent < 0 ? -extent : extent) ? a.min_filter : a.mag_filter;
}

// The first pixel of the region of interest, and the one after its last; as in DALI, with one more for NN.
SHARED int64_t region_begin(const ResampleArgs &a, int d) {
  const float start = (float)a.roi_start[d], end = (float)a.roi_end[d], least = floorf(start < end ? start : end);
  return least < 0 ? 0 : least < (float)a.in_size[d] ? (int64_t)least : a.in_size[d];
}
SHARED int64_t region_end(const ResampleArgs &a, int d) {
  const float start = (float)a.roi_start[d], end = (float)a.roi_end[d], most = ceilf((start > end ? start : end) + 1);
  return most < 0 ? 0 : most < (float)a.in_size[d] ? (int64_t)most : a.in_size[d];
}

// The axis that DALI resamples first if the filter of all axes is NN, by its estimate of what each order costs.
SHARED int first_resampled(const ResampleArgs &a) {
  const int n = a.n_axes > 2 ? 3 : 2;
  const float work[3] = {1.4f, 1.0f, 1.2f};  // for each element; the innermost axis comes first
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  for (int d = 0; d < a.n_axes; d++) {
    in[a.n_axes - 1 - d] = region_end(a, d) - region_begin(a, d);
    out[a.n_axes - 1 - d] = a.out_size[d];
  }
  float least = 1e30f;
  int first = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (j == i) continue;
      const int order[3] = {i, j, 3 - i - j};
      int64_t size[3] = {in[0], in[1], in[2]};
      float cost = 0;
      for (int k = 0; k < n; k++) {
        size[order[k]] = out[order[k]];
        const float elements = (float)(size[0] * size[1] * size[2]);
        cost += work[order[k]] * elements + elements * 3;
      }
      if (cost < least) least = cost, first = i;
    }
  return a.n_axes - 1 - first;
}

SHARED ResampleAxis resample_axis(const ResampleArgs &a, int d) {
  ResampleAxis x{};
  if (a.rule) return exact_axis(a, d);
  x.filter = filter_of(a, d);
  x.scale = (a.roi_end[d] - a.roi_start[d]) / (double)a.out_size[d];
  double s = x.scale < 0 ? -x.scale : x.scale;
  x.stretch = a.antialias && s > 1 ? s : 1;
  x.radius = x.stretch * filter_radius(x.filter);
  x.in_size = a.in_size[d];
  x.center = a.roi_start[d] + 0.5 * x.scale - 0.5;
  x.adds_up = x.filter == NN && d < a.n_axes - 1;
  x.base = 0;
  if (x.filter == NN) {
    // As in DALI, coordinates are in single precision, which decides ties. They are relative to the region's begin, but
    // along the axis that is resampled first.
    bool is_first = true;
    for (int i = 0; i < a.n_axes; i++) is_first &= filter_of(a, i) == NN;
    is_first = is_first && first_resampled(a) == d;
    const float start = (float)a.roi_start[d], end = (float)a.roi_end[d];
    x.base = is_first ? 0 : region_begin(a, d);
    x.center = start - (float)x.base;
    x.scale = (end - start) / (float)a.out_size[d];
    x.radius = 0.5;
  }
  return x;
}

// Input coordinate of output j. For NN, relative to `base` and to the left edges of pixels, so that its whole part is
// the index.
SHARED double coordinate(const ResampleAxis &x, int64_t j) {
  if (x.filter == NN) return (float)x.center + ((float)j + 0.5f) * (float)x.scale;
  return x.center + (double)j * x.scale;
}

// The same for NN as by DALI on the CPU for all axes but the innermost: added up in single precision, which decides
// ties differently. Masks must not change when a program is ported.
SHARED float added_coordinate(const ResampleAxis &x, int64_t j) {
  const float step = (float)x.scale;
  float c = (float)x.center + 0.5f * step;
  for (int64_t i = 0; i < j; i++) c += step;
  return c;
}

// The range of input samples under the filter of output j, not clamped to the image.
SHARED int64_t first_tap(const ResampleAxis &x, int64_t j) {
  double c = coordinate(x, j);
  if (x.filter == NN) return x.base + (int64_t)floor(c);
  if (x.filter == GAUSSIAN) return (int64_t)ceil(c - x.radius);  // not zero at the rim, so the rim is included
  return (int64_t)floor(c - x.radius) + 1;
}
// The largest number of taps of an output.
SHARED int64_t most_taps(const ResampleAxis &x) { return (int64_t)ceil(2 * x.radius); }
// As in DALI, a Gaussian always has most_taps: beyond its last rim it falls to zero within a node; at the first it is
// cut.
SHARED int64_t last_tap(const ResampleAxis &x, int64_t j) {
  double c = coordinate(x, j);
  if (x.filter == NN) return x.base + (int64_t)floor(c);
  if (x.filter == GAUSSIAN) return (int64_t)ceil(c - x.radius) + most_taps(x) - 1;
  return (int64_t)ceil(c + x.radius) - 1;
}

SHARED int64_t clamp_index(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// The range lo .. hi - 1 of the inputs of outputs begin .. end - 1.
SHARED void source_range(const ResampleAxis &x, int64_t begin, int64_t end, int64_t *lo, int64_t *hi) {
  if (x.rule) {
    int64_t unused;
    exact_taps(x, x.mirrored ? end - 1 : begin, lo, &unused);
    exact_taps(x, x.mirrored ? begin : end - 1, &unused, hi);
    return;
  }
  int64_t low = x.scale < 0 ? end - 1 : begin, high = x.scale < 0 ? begin : end - 1;
  int64_t first = first_tap(x, low), last = last_tap(x, high);
  if (x.adds_up) {  // on the CPU only
    const int64_t added_first = x.base + (int64_t)floor(added_coordinate(x, low));
    const int64_t added_last = x.base + (int64_t)floor(added_coordinate(x, high));
    first = added_first < first ? added_first : first;
    last = added_last > last ? added_last : last;
  }
  *lo = clamp_index(first, x.in_size);
  *hi = clamp_index(last, x.in_size) + 1;
}

// As in DALI, which tabulates filters, the cubic, Lanczos and Gaussian filters are piecewise linear between these
// nodes.
constexpr int kNodesPerUnit = 32;

// The filter at |x| = i / kNodesPerUnit: Keys' cubic (a = -1/2), the three-lobed Lanczos window, exp(-4 x^2).
SHARED double filter_node(int filter, int i) {
  constexpr double kPi = 3.14159265358979323846;
  double x = (double)i / kNodesPerUnit;
  if (filter == CUBIC) return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
  if (filter == LANCZOS3) return x == 0 ? 1 : x < 3 ? 3 * sin(kPi * x) * sin(kPi * x / 3) / (kPi * kPi * x * x) : 0;
  if (filter == GAUSSIAN) return x <= 1 ? exp(-4 * x * x) : 0;
  return x < 1 ? 1 - x : 0;
}

// The weight of an input sample at the distance |x| from the output's coordinate, in units of the stretched filter.
SHARED float triangle_weight(float x) { return x < 1 ? 1 - x : 0; }
// For filters with nodes. `last`: the first node that is zero; the next one is zero, too.
SHARED float last_node(int filter) { return (float)(filter_radius(filter) * kNodesPerUnit + (filter == GAUSSIAN)); }
template <class Nodes>
SHARED float node_weight(const Nodes &nodes, float last, float x) {
  const float p = x * kNodesPerUnit < last ? x * kNodesPerUnit : last;
  const int i = (int)p;
  return nodes[i] + (p - (float)i) * (nodes[i + 1] - nodes[i]);
}
constexpr int kMostNodes = 3 * kNodesPerUnit + 2;
