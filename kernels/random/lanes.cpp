// SPDX-License-Identifier: Apache-2.0
#include "random/lanes.h"

#include "core/kernel.h"

CLONES void lane_words(const DistributionArgs &r, uint32_t first, uint32_t (&words)[kLaneWords]) {
  Lanes c;
  lanes_of(r, first, 0, c);
  for (int i = 0; i < kLanes; i++)
    for (int j = 0; j < 4; j++) words[4 * i + j] = c.w[j][i];
}
