// SPDX-License-Identifier: Apache-2.0
#include "noise/salt_and_pepper.h"

#include <cstring>
#include <type_traits>

#include "core/kernel.h"
#include "random/lanes.h"

namespace {

// 32-bit comparisons: words below `noise` disturb, those of them below `salt` are bright. The cases of all and of no
// words are handled separately. T: an unsigned integer of an element's size, as elements are only copied.
template <class T>
struct Spots {
  uint32_t last_noise, last_salt;  // inclusive limits of the words that disturb
  bool any, any_salt;
  T bright, dark;
  Spots(const SaltAndPepperArgs &a, T bright, T dark)
      : last_noise((uint32_t)(a.noise - 1)),
        last_salt((uint32_t)(a.salt - 1)),
        any(a.noise > 0),
        any_salt(a.salt > 0),
        bright(bright),
        dark(dark) {
    if (!any_salt) this->bright = dark;
  }
  T at(T x, uint32_t w) const {
    const T spot = w <= last_salt ? bright : dark;
    return w <= last_noise ? spot : x;
  }
};

// A random word per element.
template <class T>
CLONES void by_element(T *__restrict out, const T *__restrict in, int64_t n, const DistributionArgs &r, Spots<T> s) {
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    uint32_t w[kLaneWords];
    lane_words(r, (uint32_t)(begin / 4), w);
    if (n - begin >= kLaneWords)
      for (int i = 0; i < kLaneWords; i++) out[begin + i] = s.at(in[begin + i], w[i]);
    else
      for (int i = 0; i < (int)(n - begin); i++) out[begin + i] = s.at(in[begin + i], w[i]);
  }
}

// A random word per pixel of C interleaved channels.
template <class T, int C>
CLONES void by_pixel(T *__restrict out, const T *__restrict in, int64_t n, const DistributionArgs &r, Spots<T> s) {
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    uint32_t w[kLaneWords], each[kLaneWords * C];
    lane_words(r, (uint32_t)(begin / 4), w);
    for (int i = 0; i < kLaneWords; i++)
      for (int c = 0; c < C; c++) each[C * i + c] = w[i];
    const T *x = in + begin * C;
    T *y = out + begin * C;
    if (n - begin >= kLaneWords)
      for (int i = 0; i < kLaneWords * C; i++) y[i] = s.at(x[i], each[i]);
    else
      for (int i = 0; i < (int)(n - begin) * C; i++) y[i] = s.at(x[i], each[i]);
  }
}

template <class T>
CLONES void by_many_channels(T *__restrict out, const T *__restrict in, int64_t n, int64_t channels,
                             const DistributionArgs &r, Spots<T> s) {
  for (int64_t begin = 0; begin < n; begin += kLaneWords) {
    uint32_t w[kLaneWords];
    lane_words(r, (uint32_t)(begin / 4), w);
    for (int i = 0; i < kLaneWords && begin + i < n; i++)
      for (int64_t c = 0; c < channels; c++)
        out[(begin + i) * channels + c] = s.at(in[(begin + i) * channels + c], w[i]);
  }
}

template <class T>
void disturb(T *out, const T *in, int64_t n, const SaltAndPepperArgs &a, T bright, T dark) {
  const Spots<T> s(a, bright, dark);
  if (!s.any || n == 0) {
    if (n) std::memcpy(out, in, n * sizeof(T));
    return;
  }
  const DistributionArgs r = noise_draws(a);
  const int64_t pixels = n / a.channels;
  if (a.channels == 1) return by_element(out, in, n, r, s);
  if (!a.inner) {
    for (int64_t c = 0; c < a.channels; c++) by_element(out + c * pixels, in + c * pixels, pixels, r, s);
    return;
  }
  if (a.channels == 3) return by_pixel<T, 3>(out, in, pixels, r, s);
  by_many_channels(out, in, pixels, a.channels, r, s);
}

}  // namespace

static void run(const Tensor *out, const Tensor *in, const SaltAndPepperArgs &a, Scratch &) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float>(in->dtype, [&](auto t) {
    typedef decltype(t) T;
    typedef std::conditional_t<
        sizeof(T) == 1, uint8_t,
        std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>
        Bits;
    const T bright = saturate<T>(a.bright), dark = saturate<T>(a.dark);
    Bits bits[2];
    std::memcpy(&bits[0], &bright, sizeof bright), std::memcpy(&bits[1], &dark, sizeof dark);
    disturb(out->as<Bits>(), in->as<Bits>(), in->volume(), a, bits[0], bits[1]);
  });
}

EXPORT_KERNEL(salt_and_pepper, SaltAndPepperArgs, run)
