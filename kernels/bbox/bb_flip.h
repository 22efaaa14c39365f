// SPDX-License-Identifier: Apache-2.0
// Boxes mirrored in the unit square: (left, top, right, bottom) or (left, top, width, height).
#pragma once
#include "core/tensor.h"

struct BbFlipArgs {
  int32_t horizontal, vertical, ltrb;
};

struct Box4 {
  float v[4];
};

SHARED Box4 bb_flip(const Box4 &box, const BbFlipArgs &a) {
  Box4 out = box;
  const int32_t flips[2] = {a.horizontal, a.vertical};
  for (int d = 0; d < 2; d++) {
    if (!flips[d]) continue;
    out.v[d] = 1 - (a.ltrb ? box.v[2 + d] : box.v[d] + box.v[2 + d]);
    if (a.ltrb) out.v[2 + d] = 1 - box.v[d];
  }
  return out;
}
