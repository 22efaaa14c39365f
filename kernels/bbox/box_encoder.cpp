// SPDX-License-Identifier: Apache-2.0
#include "bbox/box_encoder.h"

#include <algorithm>

#include "core/kernel.h"

namespace {

constexpr int kLanes = 16;

struct Match {
  float *iou;      // with the current box
  float *best;     // the largest IoU so far
  int32_t *found;  // index of that box
};

// Compares one box with all anchors; *most is its largest IoU. Later boxes win ties.
CLONES void compare(const BoxEncoderArgs &a, const float *box, int32_t index, Match m, float *most) {
  const int64_t n = a.n_anchors;
  const float *__restrict l = a.anchors, *__restrict t = l + n, *__restrict r = t + n, *__restrict b = r + n,
                          *__restrict area = b + n;
  float *__restrict iou = m.iou, *__restrict best = m.best;
  int32_t *__restrict found = m.found;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; j++) {
      const int64_t k = i + j;
      const float x = overlap(box, l[k], t[k], r[k], b[k], area[k]);
      iou[k] = x;
      lanes[j] = x > lanes[j] ? x : lanes[j];
      found[k] = x >= best[k] ? index : found[k];
      best[k] = x >= best[k] ? x : best[k];
    }
  for (; i < n; i++) {
    const float x = overlap(box, l[i], t[i], r[i], b[i], area[i]);
    iou[i] = x;
    lanes[0] = x > lanes[0] ? x : lanes[0];
    found[i] = x >= best[i] ? index : found[i];
    best[i] = x >= best[i] ? x : best[i];
  }
  *most = *std::max_element(lanes, lanes + kLanes);
}

void run(const Tensor *out, const Tensor *in, const BoxEncoderArgs &a, Scratch &scratch) {
  const int64_t n_boxes = in[0].volume() / 4, n = a.n_anchors;
  const float *boxes = in[0].as<float>();
  const int32_t *labels = in[1].as<int32_t>();
  float *encoded = out[0].as<float>();
  int32_t *classes = out[1].as<int32_t>();
  Match m{scratch.array<float>(n, 0), scratch.array<float>(n, 1), scratch.array<int32_t>(n, 2)};
  int64_t *nearest = scratch.array<int64_t>(n_boxes, 3);
  std::fill(m.best, m.best + n, 0.0f);
  std::fill(m.found, m.found + n, -1);
  for (int64_t i = 0; i < n_boxes; i++) {
    float box[5], most;
    std::copy(boxes + 4 * i, boxes + 4 * i + 4, box);
    box[4] = (box[2] - box[0]) * (box[3] - box[1]);
    compare(a, box, (int32_t)i, m, &most);
    // The last anchor with the largest IoU; the last of all anchors if nothing overlaps.
    int64_t k = n - 1;
    while (most > 0 && m.iou[k] != most) k--;
    nearest[i] = k;
  }
  for (int64_t k = 0; k < n; k++)
    if (!(m.best[k] > a.criteria)) m.found[k] = -1;
  for (int64_t i = 0; i < n_boxes; i++) m.found[nearest[i]] = (int32_t)i;
  for (int64_t k = 0; k < n; k++) {
    const int32_t i = m.found[k];
    const float anchor[4] = {a.anchors[k], a.anchors[n + k], a.anchors[2 * n + k], a.anchors[3 * n + k]};
    encode(anchor, i < 0 ? nullptr : boxes + 4 * i, a, encoded + 4 * k);
    classes[k] = i < 0 ? 0 : labels[i];
  }
}

}  // namespace

EXPORT_KERNEL(box_encoder, BoxEncoderArgs, run)
