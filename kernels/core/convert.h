// SPDX-License-Identifier: Apache-2.0
// Saturating conversion between the data types, and IEEE 754 binary16 on machines without it.
#pragma once
#include "core/tensor.h"

// binary16 kept as bits; converts through float, rounding half to even.
struct half {
  uint16_t bits;
  half() = default;
  SHARED half(float f) : bits(from_float(f)) {}
  SHARED operator float() const { return to_float(bits); }

#ifdef __CUDA_ARCH__
  __device__ static float to_float(uint16_t h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
  }
  __device__ static uint16_t from_float(float f) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
  }
#else
  SHARED static uint32_t as_bits(float f) {
    uint32_t u;
    __builtin_memcpy(&u, &f, 4);
    return u;
  }
  SHARED static float as_float(uint32_t u) {
    float f;
    __builtin_memcpy(&f, &u, 4);
    return f;
  }
  SHARED static float to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    // Multiplying by 2^112 rebiases the exponent and turns subnormals into normals in one step.
    float magnitude = as_float(rest << 13) * as_float(0x77800000u);
    uint32_t m = as_bits(magnitude);
    if (rest >= 0x7c00) m = 0x7f800000u | (rest & 0x3ff) << 13;
    return as_float(sign | m);
  }
  SHARED static uint16_t from_float(float f) {
    uint32_t u = as_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffffu;
    uint32_t normal = (a + 0xfffu + (a >> 13 & 1) - 0x38000000u) >> 13;
    // Adding 0.5 aligns the mantissa of a subnormal result with the low bits, rounding on the way.
    uint32_t subnormal = as_bits(as_float(a) + 0.5f) - 0x3f000000u;
    uint32_t m = a < 0x38800000u ? subnormal : normal;
    if (a >= 0x477ff000u) m = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (uint16_t)(sign | m);
  }
#endif
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<uint8_t> {
  static constexpr int value = UINT8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr int value = UINT16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr int value = UINT32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr int value = UINT64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr int value = INT8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr int value = INT16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr int value = INT32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr int value = INT64;
};
template <>
struct DTypeOf<half> {
  static constexpr int value = FLOAT16;
};
template <>
struct DTypeOf<float> {
  static constexpr int value = FLOAT;
};
template <>
struct DTypeOf<double> {
  static constexpr int value = FLOAT64;
};
template <>
struct DTypeOf<bool> {
  static constexpr int value = BOOL;
};

// lo and hi are the smallest and largest floats (doubles) whose conversion to Out is in range.
template <class T>
struct Range;
template <>
struct Range<uint8_t> {
  static constexpr double lo = 0, hi = 255;
};
template <>
struct Range<uint16_t> {
  static constexpr double lo = 0, hi = 65535;
};
template <>
struct Range<uint32_t> {
  static constexpr double lo = 0, hi = 4294967295.0;
};
template <>
struct Range<int8_t> {
  static constexpr double lo = -128, hi = 127;
};
template <>
struct Range<int16_t> {
  static constexpr double lo = -32768, hi = 32767;
};
template <>
struct Range<int32_t> {
  static constexpr double lo = -2147483648.0, hi = 2147483647.0;
};

// Rounds to the nearest integer, halves away from zero as DALI does on the CPU. Adding the largest float below 0.5
// instead of 0.5 keeps 0.49999997 at 0: every sum that is not exact rounds to the right side.
template <class Int>
SHARED Int round_half_away(float x) {
  return (Int)(x + __builtin_copysignf(0.49999997f, x));
}

template <class T>
SHARED float to_float(T x) {
  return (float)x;
}
#ifdef __CUDA_ARCH__
// Avoids the slow conversion unit: the bits of 2^23 + x, where x is a byte.
template <>
__device__ __forceinline__ float to_float(uint8_t x) {
  return __uint_as_float(0x4B000000u | x) - 8388608.0f;
}
#endif

template <class Out, class In>
struct Saturate;

// Converts to Out: rounds (halves away from zero), clamps to the range of Out; NaN becomes 0 in integers.
template <class Out, class In>
SHARED Out saturate(In x) {
  return Saturate<Out, In>::apply(x);
}

#define FLOAT_TO_SMALL_INT(OUT)                                               \
  template <>                                                                 \
  struct Saturate<OUT, float> {                                               \
    SHARED static OUT apply(float x) {                                        \
      constexpr float lo = (float)Range<OUT>::lo, hi = (float)Range<OUT>::hi; \
      x = x > lo ? x : lo == 0 || x == x ? lo : 0.0f;                         \
      x = x < hi ? x : hi;                                                    \
      if (lo == 0) return (OUT)(int32_t)(x + 0.49999997f);                    \
      return (OUT)round_half_away<int32_t>(x);                                \
    }                                                                         \
  };
#ifdef __CUDA_ARCH__
// Avoids the slow conversion unit: a float of 2^23 or more has no fraction bits.
template <>
struct Saturate<uint8_t, float> {
  __device__ static uint8_t apply(float x) {
    x = fminf(fmaxf(x, 0.0f), 255.0f);
    return (uint8_t)__float_as_uint(__fadd_rz(x + 0.49999997f, 8388608.0f));
  }
};
#else
FLOAT_TO_SMALL_INT(uint8_t)
#endif
FLOAT_TO_SMALL_INT(int8_t)
FLOAT_TO_SMALL_INT(uint16_t)
FLOAT_TO_SMALL_INT(int16_t)
#undef FLOAT_TO_SMALL_INT

// Without branches, so that loops over it become SIMD; 2147483520 is the largest float below 2^31.
template <>
struct Saturate<int32_t, float> {
  SHARED static int32_t apply(float x) {
    float c = x > -2147483648.0f ? x : -2147483648.0f;
    c = c < 2147483520.0f ? c : 2147483520.0f;
    int32_t y = round_half_away<int32_t>(c);
    y = x >= 2147483648.0f ? 2147483647 : y;
    return x == x ? y : 0;
  }
};

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<half> {
  static constexpr bool value = true;
};
template <class T>
struct IsSigned {
  static constexpr bool value = (T)-1 < (T)0;
};
template <>
struct IsSigned<bool> {
  static constexpr bool value = false;
};
template <>
struct IsSigned<half> {
  static constexpr bool value = true;
};

template <class Out, class In>
struct Saturate {
  SHARED static Out apply(In x) {
    if constexpr (DTypeOf<Out>::value == BOOL) {
      // Like a rounding conversion: values nearer to 0 than 0.5 are false, NaN is true.
      if constexpr (IsFloat<In>::value) return !((double)x > -0.5 && (double)x < 0.5);
      return x != (In)0;
    } else if constexpr (DTypeOf<In>::value == FLOAT16) {
      return saturate<Out>((float)x);
    } else if constexpr (DTypeOf<Out>::value == FLOAT16) {
      return half((float)x);
    } else if constexpr (IsFloat<Out>::value) {
      return (Out)x;
    } else if constexpr (IsFloat<In>::value) {
      // 2^(bits-1) and 2^bits are exact in every float type, unlike the largest integers themselves.
      constexpr int bits = sizeof(Out) * 8 - (IsSigned<Out>::value ? 1 : 0);
      const In top = (In)2 * (In)(1ull << (bits - 1));
      const Out largest = (Out)(~0ull >> (64 - bits));
      if (!(x == x)) return 0;
      if (x >= top) return largest;
      if constexpr (IsSigned<Out>::value) {
        if (x <= -top) return (Out)(-largest - 1);
      } else {
        if (x <= 0) return 0;
      }
      Out whole = (Out)x;
      In rest = x - (In)whole;
      if (rest >= (In)0.5 && whole != largest) return whole + 1;
      if (IsSigned<Out>::value && rest <= (In)-0.5) return whole - 1;
      return whole;
    } else {
      constexpr int bits = sizeof(Out) * 8 - (IsSigned<Out>::value ? 1 : 0);
      constexpr Out largest = (Out)(~0ull >> (64 - bits));
      constexpr Out smallest = IsSigned<Out>::value ? (Out)(-(int64_t)largest - 1) : (Out)0;
      if (IsSigned<In>::value && x < (In)0)
        return !IsSigned<Out>::value ? (Out)0 : (int64_t)x < (int64_t)smallest ? smallest : (Out)x;
      return (uint64_t)x > (uint64_t)largest ? largest : (Out)x;
    }
  }
};
