// SPDX-License-Identifier: Apache-2.0
// Shared by the kinds of noise. Element (or pixel) i uses a random word of block i / 4, so the result does not depend
// on the thread that makes it.
#pragma once
#include "random/distribution.h"

template <class Args>
SHARED DistributionArgs noise_draws(const Args &a) {
  DistributionArgs r{};
  r.key = (int64_t)a.key, r.position = (int64_t)a.position, r.epoch = (int32_t)a.epoch;
  return r;
}
