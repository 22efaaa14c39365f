// SPDX-License-Identifier: Apache-2.0
// What the kinds of noise share: one random word per element (or pixel), that of block i / 4, so that it does not
// matter which thread makes it.
#pragma once
#include "random/distribution.h"

template <class Args>
SHARED DistributionArgs noise_draws(const Args &a) {
  DistributionArgs r{};
  r.key = (int64_t)a.key, r.position = (int64_t)a.position, r.epoch = (int32_t)a.epoch;
  return r;
}
