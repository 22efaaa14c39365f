// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: shot_all<To0::T>(l); 4096 bytes of out[0] per block of 256 threads
#include "noise/gpu_noise.h"
#include "noise/shot.h"

template <class T>
DEVICE void shot_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const ShotArgs a = ((const ShotArgs *)l.args[0])[sample];
    const DistributionArgs r = noise_draws(a);
    each_noise_group<T>(l.tensors[0][sample], l.tensors[1][sample], [&](uint32_t group, const T *in, T *out) {
      uint32_t w[4];
      distribution_block(r, group, 0, w);
      for (uint32_t i = 0; i < 4; i++) out[i] = counted(in[i], a.factor, w[i], r, 4 * group + i);
    });
  }
}
