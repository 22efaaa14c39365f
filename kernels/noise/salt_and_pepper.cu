// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_runs.h"
#include "noise/gpu_noise.h"
#include "noise/salt_and_pepper.h"

// A random word per element.
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

// The number of groups of four pixels with C channels that make a multiple of 16 bytes. (The plan computes it, too.)
template <class T, int C>
DEVICE constexpr int fours_at_once() {
  int n = 1;
  while (n * 4 * C * sizeof(T) % 16 != 0) n *= 2;
  return n;
}

// `noise` and `salt` of the arguments in 32 bits.
struct DisturbedBelow {
  uint32_t noise, salt;
  bool all, all_salt;
};

// As `disturbed`, for four pixels of three bytes. Each word has bytes of two pixels.
DEVICE void disturb_words(uint32_t *words, const uint32_t (&w)[4], const DisturbedBelow &a, uint8_t bright,
                          uint8_t dark) {
  uint32_t kept[4], value[4];
#pragma unroll
  for (int p = 0; p < 4; p++) {
    kept[p] = !a.all && w[p] >= a.noise ? ~0u : 0;
    value[p] = (a.all_salt || w[p] < a.salt ? bright : dark) * 0x01010101u;
  }
#pragma unroll
  for (int k = 0; k < 3; k++) {
    const uint32_t bytes = k == 0 ? 0x4210 : k == 1 ? 0x5421 : 0x6542, keep = __byte_perm(kept[k], kept[k + 1], bytes);
    words[k] = (words[k] & keep) | (__byte_perm(value[k], value[k + 1], bytes) & ~keep);
  }
}

// A random word per pixel of C interleaved channels. A thread makes groups of four pixels, each from one block of
// random words.
template <class T, int C>
DEVICE void salt_and_pepper_inner(const Launch &l) {
  constexpr int F = fours_at_once<T, C>(), V = 4 * C * F;
  FOR_SAMPLES(sample, l) {
    const SaltAndPepperArgs a = ((const SaltAndPepperArgs *)l.args[0])[sample];
    const DistributionArgs r = noise_draws(a);
    const T bright = saturate<T>(a.bright), dark = saturate<T>(a.dark);
    const Tensor to = l.tensors[0][sample];
    const int64_t n = volume_of(to);
    T *const out = to.template as<T>();
    const T *const in = l.tensors[1][sample].template as<T>();
    const uint32_t runs = (uint32_t)((n + V - 1) / V);
    const DisturbedBelow limits = {(uint32_t)a.noise, (uint32_t)a.salt, a.noise >> 32 > 0, a.salt >> 32 > 0};
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < runs; i += gridDim.x * blockDim.x) {
      const int64_t at = (int64_t)i * V;
      const int count = n - at < V ? (int)(n - at) : V;
      T x[V] __attribute__((aligned(16)));
      load_run(x, in + at, 0, count);
#pragma unroll
      for (int f = 0; f < F; f++) {
        uint32_t w[4];
        distribution_block(r, i * F + f, 0, w);
        if constexpr (C == 3 && sizeof(T) == 1) {
          disturb_words((uint32_t *)x + 3 * f, w, limits, (uint8_t)bright, (uint8_t)dark);
        } else {
#pragma unroll
          for (int k = 0; k < 4 * C; k++) {
            T &y = x[f * 4 * C + k];
            y = disturbed(y, w[k / C], a.noise, a.salt, bright, dark);
          }
        }
      }
      store_run(out + at, x, 0, count);
    }
  }
}

// A random word per pixel. Four consecutive elements need at most two blocks of random words.
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
