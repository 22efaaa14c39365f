// SPDX-License-Identifier: Apache-2.0
// Converts boxes from image coordinates to coordinates of the canvas that the image is pasted on.
#pragma once
#include "bbox/bb_flip.h"

struct BboxPasteArgs {
  float ratio;      // canvas size / image size
  float left, top;  // position of the image on the canvas
  int32_t ltrb;
};

SHARED Box4 bbox_paste(const Box4 &box, const BboxPasteArgs &a) {
  const float at[2] = {a.left, a.top};
  Box4 out;
  for (int d = 0; d < 2; d++) {
    out.v[d] = box.v[d] / a.ratio + at[d];
    out.v[2 + d] = box.v[2 + d] / a.ratio + (a.ltrb ? at[d] : 0);
  }
  return out;
}
