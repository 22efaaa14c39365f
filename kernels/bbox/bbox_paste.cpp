// SPDX-License-Identifier: Apache-2.0
#include "bbox/bbox_paste.h"

#include "core/kernel.h"

static void run(const Tensor *out, const Tensor *in, const BboxPasteArgs &a, Scratch &) {
  const Box4 *boxes = in->as<Box4>();
  Box4 *pasted = out->as<Box4>();
  const int64_t n = in->volume() / 4;
  for (int64_t i = 0; i < n; i++) pasted[i] = bbox_paste(boxes[i], a);
}

EXPORT_KERNEL(bbox_paste, BboxPasteArgs, run)
