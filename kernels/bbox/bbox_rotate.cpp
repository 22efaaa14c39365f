// SPDX-License-Identifier: Apache-2.0
#include "bbox/bbox_rotate.h"

#include <algorithm>

#include "core/kernel.h"

namespace {

// The rotated box as corners in pixels of the canvas, cut to it; false if too little of it is left.
bool rotate(const float *box, const BboxRotateArgs &a, double *corners) {
  double centre[2], size[2];
  for (int d = 0; d < 2; d++) {
    const double unit = a.normalized ? a.extent[d] : 1;
    const double begin = box[d] * unit, end = a.sizes ? begin + box[2 + d] * unit : box[2 + d] * unit;
    centre[d] = (begin + end) / 2 - a.extent[d] / 2;
    size[d] = std::fabs(end - begin);
  }
  const double moved[2] = {a.cosine * centre[0] + a.sine * centre[1], a.cosine * centre[1] - a.sine * centre[0]};
  const double c = std::fabs(a.cosine), s = std::fabs(a.sine);
  const double enclosing[2] = {c * size[0] + s * size[1], s * size[0] + c * size[1]};
  if (s > c) std::swap(size[0], size[1]);  // a quarter turn is nearer than none
  double before = 1, after = 1;
  for (int d = 0; d < 2; d++) {
    const double width = a.mode == kFixed ? size[d] : a.mode == kHalfway ? (size[d] + enclosing[d]) / 2 : enclosing[d];
    const double middle = moved[d] + a.canvas[d] / 2;
    corners[d] = std::clamp(middle - width / 2, 0.0, a.canvas[d]);
    corners[2 + d] = std::clamp(middle + width / 2, 0.0, a.canvas[d]);
    before *= width;
    after *= corners[2 + d] - corners[d];
  }
  return after / before >= a.threshold;  // false also for boxes without an area, and for NaN
}

void run(const Tensor *out, const Tensor *in, const BboxRotateArgs &a, Scratch &) {
  const int64_t n = in[0].shape[0];
  const float *boxes = in[0].as<float>();
  float *kept = out[0].as<float>();
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    double corners[4];
    if (!rotate(boxes + 4 * i, a, corners)) continue;
    for (int d = 0; d < 2; d++) {
      const double unit = a.normalized ? a.canvas[d] : 1;
      kept[4 * count + d] = (float)(corners[d] / unit);
      kept[4 * count + 2 + d] = (float)((a.sizes ? corners[2 + d] - corners[d] : corners[2 + d]) / unit);
    }
    if (a.has_labels) out[2].as<int32_t>()[count] = in[1].as<int32_t>()[i];
    count++;
  }
  out[1].as<int64_t>()[0] = count;
}

}  // namespace

EXPORT_KERNEL(bbox_rotate, BboxRotateArgs, run)
