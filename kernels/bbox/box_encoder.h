// SPDX-License-Identifier: Apache-2.0
// Training targets for SSD: the box that each anchor predicts and its offset. Liu et al.: SSD: Single Shot MultiBox
// Detector (2016), section 2.2.
#pragma once
#include "core/tensor.h"

struct BoxEncoderArgs {
  const float *anchors;  // five rows of n_anchors: left, top, right, bottom, area
  int64_t n_anchors;
  float criteria, scale;
  float means[4], stds[4];
  int32_t offset;
};

// (centre x, centre y, width, height)
SHARED void centred(const float *ltrb, float *out) {
  for (int d = 0; d < 2; d++) {
    out[d] = 0.5f * (ltrb[d] + ltrb[2 + d]);
    out[2 + d] = ltrb[2 + d] - ltrb[d];
  }
}

// Intersection over union of the box (left, top, right, bottom, area) and the anchor.
SHARED float overlap(const float *box, float l, float t, float r, float b, float area) {
  const float left = box[0] > l ? box[0] : l, top = box[1] > t ? box[1] : t;
  const float right = box[2] < r ? box[2] : r, bottom = box[3] < b ? box[3] : b;
  const float w = right - left, h = bottom - top;
  const float both = (w > 0 ? w : 0.0f) * (h > 0 ? h : 0.0f);
  return both / (box[4] + area - both);
}

// The output for an anchor: the encoded box, or if `box` is null, the anchor itself (zeros if `offset`).
SHARED void encode(const float *anchor, const float *box, const BoxEncoderArgs &a, float *out) {
  float from[4], to[4];
  centred(anchor, from);
  if (!box) {
    for (int d = 0; d < 4; d++) out[d] = a.offset ? 0.0f : from[d];
    return;
  }
  centred(box, to);
  if (!a.offset) {
    for (int d = 0; d < 4; d++) out[d] = to[d];
    return;
  }
  for (int d = 0; d < 2; d++) {
    const float width = from[2 + d] * a.scale;
    out[d] = ((to[d] * a.scale - from[d] * a.scale) / width - a.means[d]) / a.stds[d];
    out[2 + d] = (logf(to[2 + d] * a.scale / width) - a.means[2 + d]) / a.stds[2 + d];
  }
}
