// SPDX-License-Identifier: Apache-2.0
#include "bbox/bbox_rotate.h"

#include <algorithm>
#include <cmath>

#include "core/kernel.h"

namespace {

constexpr double kSlack = 1e-2;  // as in fn.rotate

struct Turn {
  double cosine, sine, extent[2], canvas[2];  // width and height
  explicit Turn(const BboxRotateArgs &a) {
    // As fn.rotate does it, so that both agree about which of two sides contributes more at 45 degrees.
    const double radians = a.angle * (float)(M_PI / 180);
    cosine = std::cos(radians), sine = std::sin(radians);
    const double c = std::fabs(cosine), s = std::fabs(sine);
    for (int d = 0; d < 2; d++) {
      extent[d] = a.extent[d];
      const double same = c >= s ? a.extent[d] : a.extent[1 - d], reach = c * a.extent[d] + s * a.extent[1 - d];
      const double least = std::ceil((std::isfinite(reach) ? reach : 0) - kSlack);
      canvas[d] = a.canvas == kGiven  ? std::floor(a.size[1 - d] + 0.5)
                  : a.canvas == kSame ? a.extent[d]
                                      : least + std::fabs(std::fmod(least - same, 2));
    }
  }
};

// The rotated box as corners in pixels of the canvas, cut to it; false if too little of it is left.
bool rotate(const float *box, const Turn &t, const BboxRotateArgs &a, double *corners) {
  double centre[2], size[2];
  for (int d = 0; d < 2; d++) {
    const double unit = a.normalized ? t.extent[d] : 1;
    const double begin = box[d] * unit, end = a.sizes ? begin + box[2 + d] * unit : box[2 + d] * unit;
    centre[d] = (begin + end) / 2 - t.extent[d] / 2;
    size[d] = std::fabs(end - begin);
  }
  const double moved[2] = {t.cosine * centre[0] + t.sine * centre[1], t.cosine * centre[1] - t.sine * centre[0]};
  const double c = std::fabs(t.cosine), s = std::fabs(t.sine);
  const double enclosing[2] = {c * size[0] + s * size[1], s * size[0] + c * size[1]};
  if (s > c) std::swap(size[0], size[1]);  // a quarter turn is nearer than none
  double before = 1, after = 1;
  for (int d = 0; d < 2; d++) {
    const double width = a.mode == kFixed ? size[d] : a.mode == kHalfway ? (size[d] + enclosing[d]) / 2 : enclosing[d];
    const double middle = moved[d] + t.canvas[d] / 2;
    corners[d] = std::clamp(middle - width / 2, 0.0, t.canvas[d]);
    corners[2 + d] = std::clamp(middle + width / 2, 0.0, t.canvas[d]);
    before *= width;
    after *= corners[2 + d] - corners[d];
  }
  return after / before >= a.threshold;  // false also for boxes without an area, and for NaN
}

void run(Tensor *out, const Tensor *in, const BboxRotateArgs &a, Scratch &) {
  const int64_t n = in[0].shape[0];
  const float *boxes = in[0].as<float>();
  float *kept = out[0].as<float>();
  const Turn turn(a);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    double corners[4];
    if (!rotate(boxes + 4 * i, turn, a, corners)) continue;
    for (int d = 0; d < 2; d++) {
      const double unit = a.normalized ? turn.canvas[d] : 1;
      kept[4 * count + d] = (float)(corners[d] / unit);
      kept[4 * count + 2 + d] = (float)((a.sizes ? corners[2 + d] - corners[d] : corners[2 + d]) / unit);
    }
    if (a.has_labels) out[1].as<int32_t>()[count] = in[1].as<int32_t>()[i];
    count++;
  }
  for (int t = 0; t < 1 + a.has_labels; t++) out[t].shape[0] = count;
}

}  // namespace

EXPORT_KERNEL(bbox_rotate, BboxRotateArgs, run)
