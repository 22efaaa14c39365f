// SPDX-License-Identifier: Apache-2.0
// out = multiplier * log10(max(ratio, in / reference)).
#pragma once
#ifndef __CUDACC__
#include <cstring>
#endif
#include "core/tensor.h"

struct DecibelsArgs {
  float multiplier;
  float smallest;   // ratio
  float reference;  // not 0
};

// log10 of a positive number, accurate to about one ulp; infinity for infinity.
SHARED __attribute__((always_inline)) float log10_of(float x) {
  const bool is_tiny = x < 1.17549435e-38f;
  const float scaled = is_tiny ? x * 8388608.0f : x;  // subnormal numbers become normal
  int32_t bits;
  memcpy(&bits, &scaled, 4);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // the mantissa is then in [sqrt(1/2), sqrt(2))
  const int32_t mantissa = bits - exponent * (1 << 23);
  float m;
  memcpy(&m, &mantissa, 4);
  // log(m) = 2 artanh(s)
  const float s = (m - 1) / (m + 1), t = s * s;
  const float series = s * (2 + t * (2 / 3.0f + t * (2 / 5.0f + t * (2 / 7.0f + t * (2 / 9.0f)))));
  const float e = (float)(is_tiny ? exponent - 23 : exponent);
  const float result = e * 0.301029995663981195f + series * 0.434294481903251828f;
  return x > 3.402823466e38f ? x : result;
}

// `unit` is 1 / reference.
SHARED float decibels(float x, float unit, float multiplier, float smallest) {
  const float ratio = x * unit;
  return multiplier * log10_of(ratio > smallest ? ratio : smallest);
}
