// SPDX-License-Identifier: Apache-2.0
#include "noise/gaussian.h"

#include "core/kernel.h"
#include "random/lanes.h"

// Deviates of the kLaneWords elements from `begin`, a multiple of kLaneWords, on.
CLONES static void deviates(float (&z)[kLaneWords], const DistributionArgs &r, int64_t begin) {
  Lanes c;
  lanes_of(r, (uint32_t)(begin / 4), 0, c);
  for (int i = 0; i < kLanes; i++) {
    normal_pair(c.w[0][i], c.w[1][i], z[4 * i], z[4 * i + 1]);
    normal_pair(c.w[2][i], c.w[3][i], z[4 * i + 2], z[4 * i + 3]);
  }
}

template <class T>
CLONES static void add(T *__restrict out, const T *__restrict in, int64_t n, const DistributionArgs &r, double mean,
                       double stddev) {
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    float z[kLaneWords];
    deviates(z, r, begin);
    if (n - begin >= kLaneWords)
      for (int i = 0; i < kLaneWords; i++) out[begin + i] = with_noise(in[begin + i], mean, stddev, z[i]);
    else
      for (int i = 0; i < (int)(n - begin); i++) out[begin + i] = with_noise(in[begin + i], mean, stddev, z[i]);
  }
}

static void run(const Tensor *out, const Tensor *in, const GaussianArgs &a, Scratch &) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float>(in->dtype, [&](auto t) {
    typedef decltype(t) T;
    add(out->as<T>(), in->as<T>(), in->volume(), noise_draws(a), a.mean, a.stddev);
  });
}

EXPORT_KERNEL(gaussian, GaussianArgs, run)
