// SPDX-License-Identifier: Apache-2.0
#include "bbox/bb_flip.h"

#include "core/kernel.h"

static void run(const Tensor *out, const Tensor *in, const BbFlipArgs &a, Scratch &) {
  const Box4 *boxes = in->as<Box4>();
  Box4 *flipped = out->as<Box4>();
  const int64_t n = in->volume() / 4;
  for (int64_t i = 0; i < n; i++) flipped[i] = bb_flip(boxes[i], a);
}

EXPORT_KERNEL(bb_flip, BbFlipArgs, run)
