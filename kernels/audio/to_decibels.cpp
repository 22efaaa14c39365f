// SPDX-License-Identifier: Apache-2.0
#include "audio/to_decibels.h"

#include <cfloat>
#include <cstring>

#include "core/kernel.h"

// log10 of a positive number, to about one unit of the last place; of infinity, infinity.
static inline __attribute__((always_inline)) float log10_of(float x) {
  const bool is_tiny = x < FLT_MIN;
  const float scaled = is_tiny ? x * 8388608.0f : x;  // subnormal numbers become normal
  int32_t bits;
  std::memcpy(&bits, &scaled, 4);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // the mantissa is then in [sqrt(1/2), sqrt(2))
  const int32_t mantissa = bits - exponent * (1 << 23);
  float m;
  std::memcpy(&m, &mantissa, 4);
  // log(m) = 2 artanh(s)
  const float s = (m - 1) / (m + 1), t = s * s;
  const float series = s * (2 + t * (2 / 3.0f + t * (2 / 5.0f + t * (2 / 7.0f + t * (2 / 9.0f)))));
  const float e = (float)(is_tiny ? exponent - 23 : exponent);
  const float result = e * 0.301029995663981195f + series * 0.434294481903251828f;
  return x > FLT_MAX ? x : result;
}

CLONES static float largest(const float *x, int64_t n) {
  float most[32];
  for (float &m : most) m = -FLT_MAX;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 32; k++) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
  for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
  for (int k = 1; k < 32; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
  return most[0];
}

CLONES static void convert(float *__restrict out, const float *__restrict in, int64_t n, const ToDecibelsArgs a,
                           float unit) {
  for (int64_t i = 0; i < n; i++) {
    const float ratio = in[i] * unit;
    out[i] = a.multiplier * log10_of(ratio > a.smallest ? ratio : a.smallest);
  }
}

static void run(const Tensor *out, const Tensor *in, const ToDecibelsArgs &a, Scratch &) {
  const int64_t n = in->volume();
  if (!n) return;
  float reference = a.reference;
  if (reference == 0) reference = largest(in->as<float>(), n);
  if (reference == 0 || reference == -FLT_MAX) reference = 1;
  convert(out->as<float>(), in->as<float>(), n, a, 1 / reference);
}

EXPORT_KERNEL(to_decibels, ToDecibelsArgs, run)
