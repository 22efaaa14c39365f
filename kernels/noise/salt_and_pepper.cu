// SPDX-License-Identifier: Apache-2.0
// form: own
#include "noise/gpu_noise.h"
#include "noise/salt_and_pepper.h"

// A word for each element.
template <class T>
DEVICE void salt_and_pepper_elements(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const SaltAndPepperArgs a = ((const SaltAndPepperArgs *)l.args[0])[sample];
    const DistributionArgs r = noise_draws(a);
    const T bright = saturate<T>(a.bright), dark = saturate<T>(a.dark);
    each_noise_group<T>(l.tensors[0][sample], l.tensors[1][sample], [&](uint32_t group, const T *in, T *out) {
      uint32_t w[4];
      distribution_block(r, group, 0, w);
#pragma unroll
      for (int i = 0; i < 4; i++) out[i] = disturbed(in[i], w[i], a.noise, a.salt, bright, dark);
    });
  }
}

// A word for each pixel. Four elements that follow each other belong to at most two blocks of words.
template <class T>
DEVICE void salt_and_pepper_pixels(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const SaltAndPepperArgs a = ((const SaltAndPepperArgs *)l.args[0])[sample];
    const DistributionArgs r = noise_draws(a);
    const T bright = saturate<T>(a.bright), dark = saturate<T>(a.dark);
    const Tensor out = l.tensors[0][sample];
    const uint32_t channels = a.channels, pixels = (uint32_t)(volume_of(out) / channels);
    const bool inner = a.inner;
    each_noise_group<T>(out, l.tensors[1][sample], [&](uint32_t group, const T *in, T *y) {
      uint32_t w[4], known = ~0u;
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        const uint32_t element = group * 4 + i, pixel = inner ? element / channels : element % pixels;
        if (pixel / 4 != known) known = pixel / 4, distribution_block(r, known, 0, w);
        const uint32_t k = pixel % 4, word = k < 2 ? (k == 0 ? w[0] : w[1]) : (k == 2 ? w[2] : w[3]);
        y[i] = disturbed(in[i], word, a.noise, a.salt, bright, dark);
      }
    });
  }
}
