// SPDX-License-Identifier: Apache-2.0
// Converts random words to deviates of a distribution. Calls no library functions except the correctly rounded square
// root, so that loops vectorize and all processors, GPUs too, give the same bits.
#pragma once
#include "core/convert.h"

SHARED uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
#endif
}
SHARED float float_of(uint32_t u) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(u);
#else
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
#endif
}
SHARED uint64_t bits_of(double x) {
#ifdef __CUDA_ARCH__
  return (uint64_t)__double_as_longlong(x);
#else
  uint64_t u;
  __builtin_memcpy(&u, &x, 8);
  return u;
#endif
}
SHARED double double_of(uint64_t u) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double((int64_t)u);
#else
  double x;
  __builtin_memcpy(&x, &u, 8);
  return x;
#endif
}

SHARED double no_limit() { return double_of(0x7FF0000000000000u); }

// To [0, 1), from one word or from two.
SHARED double unit_of(uint32_t word) { return word * (1 / 4294967296.0); }
SHARED double unit_of(uint32_t high, uint32_t low) {
  return (high * 2097152.0 + (low >> 11)) * (1 / 9007199254740992.0);
}
// To (0, 1), without both ends.
SHARED double open_unit_of(uint32_t word) { return (word + 0.5) * (1 / 4294967296.0); }

// log(x) for x in (0, 1]. x is split into an exponent and m in [sqrt(1/2), sqrt(2)), whose logarithm is the series of 2
// artanh((m - 1) / (m + 1)).
SHARED float log_unit(float x) {
  uint32_t bits = bits_of(x);
  int32_t exponent = (int32_t)(bits - 0x3F3504F3u) >> 23;  // the bits of sqrt(1/2)
  float m = float_of(bits - ((uint32_t)exponent << 23));
  float s = (m - 1) / (m + 1), z = s * s;
  return (float)exponent * 0.6931472f + 2 * s * (1 + z * (1 / 3.f + z * (1 / 5.f + z * (1 / 7.f + z * (1 / 9.f)))));
}

// log(x) in double precision, for any positive normal number.
SHARED double log_positive(double x) {
  const uint64_t t = bits_of(x) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu);
  // The biased exponent as a double: the lowest mantissa bit of 2^52 is 1.
  double e = double_of(t >> 52 | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
  double m = double_of((t & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu), s = (m - 1) / (m + 1), z = s * s;
  double p = 1 / 13. + z * (1 / 15. + z * (1 / 17. + z * (1 / 19. + z * (1 / 21.))));
  p = z * (1 / 3. + z * (1 / 5. + z * (1 / 7. + z * (1 / 9. + z * (1 / 11. + z * p)))));
  return e * 0.69314718055994530942 + (2 * s + 2 * s * p);
}

// e^x for |x| <= 700: a power of two times the series of the rest, which is at most ln(2) / 2.
SHARED double exp_near(double x) {
  const double shift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double k = x * 1.44269504088896340736 + shift, n = k - shift;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;  // ln(2) in two parts
  double p = 1 / 720. + r * (1 / 5040. + r * (1 / 40320. + r * (1 / 362880. + r * (1 / 3628800.))));
  p = p + r * r * r * r * r * (1 / 39916800. + r * (1 / 479001600. + r * (1 / 6227020800.)));
  p = 1 + r * (1 + r * (1 / 2. + r * (1 / 6. + r * (1 / 24. + r * (1 / 120. + r * p)))));
  return p * double_of((bits_of(k) + 1023) << 52);
}

// Two normal deviates from two uniform ones. Box, Muller: A Note on the Generation of Random Normal Deviates (1958).
// The angle is split into quarter turns, which swap and negate, and a rest of at most an eighth turn, for whose sine
// and cosine Taylor series are used.
SHARED void normal_pair(uint32_t u, uint32_t v, float &a, float &b) {
  float radius = sqrtf(-2 * log_unit(((float)u + 1) * (1 / 4294967296.f)));
  uint32_t quarter = (v + 0x20000000u) >> 30;
  float t = (float)(int32_t)(v - (quarter << 30)) * (float)(6.283185307179586 / 4294967296.0), q = t * t;
  float sine = t * (1 - q * (1 / 6.f - q * (1 / 120.f - q * (1 / 5040.f - q * (1 / 362880.f)))));
  float cosine = 1 - q * (1 / 2.f - q * (1 / 24.f - q * (1 / 720.f - q * (1 / 40320.f - q * (1 / 3628800.f)))));
  float x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine, sign = quarter & 2 ? -radius : radius;
  a = sign * x;
  b = sign * y;
}

// The same in double precision: u in (0, 1], v in [0, 1).
SHARED void normal_pair(double u, double v, double &a, double &b) {
  double radius = sqrt(-2 * log_positive(u));
  int32_t quarter = (int32_t)(4 * v + 0.5);
  double t = (v - 0.25 * quarter) * 6.28318530717958647693, q = t * t;
  double s = 1 / 5040. - q * (1 / 362880. - q * (1 / 39916800. - q * (1 / 6227020800. - q * (1 / 1307674368000.))));
  double c = 1 / 40320. - q * (1 / 3628800. - q * (1 / 479001600. - q * (1 / 87178291200. - q / 20922789888000.)));
  double sine = t - t * q * (1 / 6. - q * (1 / 120. - q * s));
  double cosine = 1 - q * (1 / 2. - q * (1 / 24. - q * (1 / 720. - q * c)));
  double x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine, sign = quarter & 2 ? -radius : radius;
  a = sign * x;
  b = sign * y;
}

// Converts to the type of the output. Integers are rounded and clamped; values are at most `limit`. Integers of up to
// 31 bits are converted via int32, which is a SIMD instruction.
template <class Out>
SHARED Out deviate_as(double v, double limit) {
  if constexpr (!IsFloat<Out>::value && DTypeOf<Out>::value != BOOL &&
                (sizeof(Out) < 4 || DTypeOf<Out>::value == INT32)) {
    double x = v > Range<Out>::lo ? v : Range<Out>::lo;
    x = x < Range<Out>::hi ? x : Range<Out>::hi;
    return (Out)(int32_t)(x + (x < 0 ? -0.5 : 0.5));
  } else {
    return saturate<Out>(limit < v ? limit : v);
  }
}
