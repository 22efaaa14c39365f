// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: gaussian_all<To0::T>(l); 4096 bytes of out[0] per block of 256 threads
#include "noise/gaussian.h"
#include "noise/gpu_noise.h"

template <class T>
DEVICE void gaussian_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const GaussianArgs a = ((const GaussianArgs *)l.args[0])[sample];
    const DistributionArgs r = noise_draws(a);
    each_noise_group<T>(l.tensors[0][sample], l.tensors[1][sample], [&](uint32_t group, const T *in, T *out) {
      uint32_t w[4];
      float z[4];
      distribution_block(r, group, 0, w);
      normal_pair(w[0], w[1], z[0], z[1]);
      normal_pair(w[2], w[3], z[2], z[3]);
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = with_noise(in[i], a.mean, a.stddev, z[i]);
    });
  }
}
