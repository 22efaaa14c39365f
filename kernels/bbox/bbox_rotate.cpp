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
    // Computed as in fn.rotate, so that both choose the same longer side at 45 degrees.
    const double radians = a.angle * (float)(M_PI / 180);
    cosine = std::cos(radians), sine = std::sin(radians);
    const double c = std::fabs(cosine), s = std::fabs(sine);
    for (int d = 0; d < 2; d++) {
      extent[d] = a.extent[d];
      const double same = c >= s ? a.extent[d] : a.extent[1 - d], reach = c * a.extent[d] + s * a.extent[1 - d];
      const double least = std::ceil((std::isfinite(reach) ? reach : 0) - kSlack);
      canvas[d] = a.canvas == kGiven  ? std::floor(a.size[1 - d] + 0.5)
                  : a.canvas == kSame ? a.extent[d]
                                      : least + (double)((int64_t)(least - same) & 1);
    }
  }
};

// Whether rotation swaps width and height (a wide box becomes tall). At 45 degrees the bounding box is square up to
// float32 rounding, so the order of operations is that of DALI.
bool changes_sides(const float *box, const Turn &t, const BboxRotateArgs &a) {
  const float c = (float)t.cosine, s = (float)t.sine;
  float low[2], high[2], from[2][2];
  for (int d = 0; d < 2; d++) {
    const float begin = box[d], end = a.sizes ? begin + box[2 + d] : box[2 + d], extent = (float)a.extent[d];
    from[d][0] = a.normalized ? (begin - 0.5f) * extent : begin - extent / 2;
    from[d][1] = a.normalized ? (end - 0.5f) * extent : end - extent / 2;
  }
  for (int k = 0; k < 4; k++) {
    const float x = from[0][k & 1], y = from[1][k >> 1];
    const float moved[2] = {c * x + s * y + (float)t.canvas[0] / 2, c * y - s * x + (float)t.canvas[1] / 2};
    for (int d = 0; d < 2; d++) {
      low[d] = k ? std::min(low[d], moved[d]) : moved[d];
      high[d] = k ? std::max(high[d], moved[d]) : moved[d];
    }
  }
  const bool was_wide = std::fabs(from[0][1] - from[0][0]) > std::fabs(from[1][1] - from[1][0]);
  return was_wide == (high[0] - low[0] < high[1] - low[1]);
}

double clamped(double x, double high) { return x < 0 ? 0 : high < x ? high : x; }

// Rotates the boxes and clips them to the canvas. stays[i]: whether enough of box i is left.
CLONES void rotate(const float *__restrict boxes, int64_t n, const Turn &turn, const BboxRotateArgs &a,
                   float *__restrict out, int64_t *__restrict stays) {
  const Turn t = turn;
  const double cosine = t.cosine, sine = t.sine, c = std::fabs(cosine), s = std::fabs(sine), threshold = a.threshold;
  const bool sizes = a.sizes, fixed = a.mode == kFixed, halfway = a.mode == kHalfway;
  double unit[2], unit_out[2];
  for (int d = 0; d < 2; d++) unit[d] = a.normalized ? t.extent[d] : 1, unit_out[d] = a.normalized ? t.canvas[d] : 1;
  for (int64_t i = 0; i < n; i++) {
    double centre[2], size[2], corners[4];
    for (int d = 0; d < 2; d++) {
      const double begin = boxes[4 * i + d] * unit[d], second = boxes[4 * i + 2 + d] * unit[d];
      const double end = sizes ? begin + second : second;
      centre[d] = (begin + end) / 2 - t.extent[d] / 2;
      size[d] = std::fabs(end - begin);
    }
    const double moved[2] = {cosine * centre[0] + sine * centre[1], cosine * centre[1] - sine * centre[0]};
    const double enclosing[2] = {c * size[0] + s * size[1], s * size[0] + c * size[1]};
    const bool turned = (fixed || halfway) && changes_sides(boxes + 4 * i, t, a);
    double before = 1, after = 1;
    for (int d = 0; d < 2; d++) {
      const double own = turned ? size[1 - d] : size[d];
      const double width = fixed ? own : halfway ? (own + enclosing[d]) / 2 : enclosing[d];
      const double middle = moved[d] + t.canvas[d] / 2;
      corners[d] = clamped(middle - width / 2, t.canvas[d]);
      corners[2 + d] = clamped(middle + width / 2, t.canvas[d]);
      before *= width;
      after *= corners[2 + d] - corners[d];
    }
    for (int d = 0; d < 2; d++) {
      out[4 * i + d] = (float)(corners[d] / unit_out[d]);
      out[4 * i + 2 + d] = (float)((sizes ? corners[2 + d] - corners[d] : corners[2 + d]) / unit_out[d]);
    }
    stays[i] = after / before >= threshold;  // false also for boxes without an area, and for NaN
  }
}

void run(Tensor *out, const Tensor *in, const BboxRotateArgs &a, Scratch &scratch) {
  const int64_t n = in[0].shape[0];
  float *rotated = scratch.array<float>(4 * n), *kept = out[0].as<float>();
  int64_t *stays = scratch.array<int64_t>(n, 1), count = 0;
  rotate(in[0].as<float>(), n, Turn(a), a, rotated, stays);
  for (int64_t i = 0; i < n; i++) {
    if (!stays[i]) continue;
    for (int k = 0; k < 4; k++) kept[4 * count + k] = rotated[4 * i + k];
    if (a.has_labels) out[1].as<int32_t>()[count] = in[1].as<int32_t>()[i];
    count++;
  }
  for (int t = 0; t < 1 + a.has_labels; t++) out[t].shape[0] = count;
}

}  // namespace

EXPORT_KERNEL(bbox_rotate, BboxRotateArgs, run)
