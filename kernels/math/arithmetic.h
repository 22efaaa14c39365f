// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic on one or two tensors, with broadcasting of extents of 1. Both operands are converted to the
// type of the computation; integers wrap around.
#pragma once
#include "core/convert.h"

struct ArithmeticArgs {
  int32_t operation;    // enum Operation
  int32_t compute;      // data type of the computation; kWide compares uint64 with signed integers
  int32_t constant_at;  // index of the operand that is a constant, 0 or 1; -1: none
  int32_t padding;
  int64_t integer;  // the constant if the type of the computation is an integer
  double real;      // the constant if it is a float
};

constexpr int kWide = 100;

// The order is that of OPERATIONS in operators/math/arithmetic.py.
enum Operation : int32_t {
  ADD,
  SUB,
  MUL,
  DIV,
  FLOORDIV,
  MOD,
  POW,
  BITAND,
  BITOR,
  BITXOR,
  SHL,
  SHR,
  MIN,
  MAX,
  ATAN2,
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  NEG,
  ABS,
  INVERT,
  SQRT,
  RSQRT,
  CBRT,
  EXP,
  LOG,
  LOG2,
  LOG10,
  FLOOR,
  CEIL,
  SIN,
  COS,
  TAN,
  ASIN,
  ACOS,
  ATAN,
  SINH,
  COSH,
  TANH,
  ASINH,
  ACOSH,
  ATANH,
  N_OPERATIONS
};

template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int8_t> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};

// Exponentiation by squaring, modulo 2^bits; 0 for negative exponents.
template <class T>
SHARED T integer_power(T base, T exponent) {
  uint64_t result = 1, square = (uint64_t)base;
  if (exponent < (T)0) return 0;
  for (uint64_t e = (uint64_t)exponent; e; e >>= 1, square *= square)
    if (e & 1) result *= square;
  return (T)result;
}

// Operations on integers. Division truncates towards 0. Division by 0 gives 0 (on the CPU it is an error, for which
// each block is checked first).
template <int OP, class T>
SHARED T integer_operation(T a, T b) {
  using U = uint64_t;
  if constexpr (OP == ADD) return (T)((U)a + (U)b);
  if constexpr (OP == SUB) return (T)((U)a - (U)b);
  if constexpr (OP == MUL) return (T)((typename UnsignedOf<T>::type)a * (U)(typename UnsignedOf<T>::type)b);
  if constexpr (OP == FLOORDIV) return b == 0 ? (T)0 : IsSigned<T>::value && b == (T)-1 ? (T)(0 - (U)a) : (T)(a / b);
  if constexpr (OP == MOD) return b == 0 || (IsSigned<T>::value && b == (T)-1) ? (T)0 : (T)(a % b);
  if constexpr (OP == POW) return integer_power(a, b);
  if constexpr (OP == BITAND) return (T)(a & b);
  if constexpr (OP == BITOR) return (T)(a | b);
  if constexpr (OP == BITXOR) return (T)(a ^ b);
  constexpr int kShifts = sizeof(T) == 8 ? 63 : 31;  // short types are shifted as int, which leaves nothing of them
  if constexpr (OP == SHL) return (T)((U)a << ((U)b & kShifts));
  if constexpr (OP == SHR) return (T)(a >> ((U)b & kShifts));
  if constexpr (OP == MIN) return b < a ? b : a;
  if constexpr (OP == MAX) return b > a ? b : a;
  if constexpr (OP == NEG) return (T)(0 - (U)a);
  if constexpr (OP == ABS) return a < (T)0 ? (T)(0 - (U)a) : a;
  if constexpr (OP == INVERT) return (T)~a;
}

#if defined(__CUDACC_RTC__)
namespace std {
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::cos;
using ::cosh;
using ::exp;
using ::fabs;
using ::floor;
using ::fmod;
using ::log;
using ::log10;
using ::log2;
using ::pow;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
}  // namespace std
#endif

// Operations on floats. MIN and MAX return b if one operand is NaN.
template <int OP, class T>
SHARED T real_operation(T a, T b) {
  if constexpr (OP == ADD) return a + b;
  if constexpr (OP == SUB) return a - b;
  if constexpr (OP == MUL) return a * b;
  if constexpr (OP == DIV || OP == FLOORDIV) return a / b;
  if constexpr (OP == MOD) return std::fmod(a, b);
  if constexpr (OP == POW) return std::pow(a, b);
  if constexpr (OP == MIN) return a < b ? a : b;
  if constexpr (OP == MAX) return a > b ? a : b;
  if constexpr (OP == ATAN2) return std::atan2(a, b);
  if constexpr (OP == NEG) return -a;
  if constexpr (OP == ABS) return std::fabs(a);
  if constexpr (OP == SQRT) return std::sqrt(a);
  if constexpr (OP == RSQRT) return (T)1 / std::sqrt(a);
  if constexpr (OP == CBRT) return std::cbrt(a);
  if constexpr (OP == EXP) return std::exp(a);
  if constexpr (OP == LOG) return std::log(a);
  if constexpr (OP == LOG2) return std::log2(a);
  if constexpr (OP == LOG10) return std::log10(a);
  if constexpr (OP == FLOOR) return std::floor(a);
  if constexpr (OP == CEIL) return std::ceil(a);
  if constexpr (OP == SIN) return std::sin(a);
  if constexpr (OP == COS) return std::cos(a);
  if constexpr (OP == TAN) return std::tan(a);
  if constexpr (OP == ASIN) return std::asin(a);
  if constexpr (OP == ACOS) return std::acos(a);
  if constexpr (OP == ATAN) return std::atan(a);
  if constexpr (OP == SINH) return std::sinh(a);
  if constexpr (OP == COSH) return std::cosh(a);
  if constexpr (OP == TANH) return std::tanh(a);
  if constexpr (OP == ASINH) return std::asinh(a);
  if constexpr (OP == ACOSH) return std::acosh(a);
  if constexpr (OP == ATANH) return std::atanh(a);
}

template <int OP, class T>
SHARED bool comparison(T a, T b) {
  if constexpr (OP == EQ) return a == b;
  if constexpr (OP == NE) return a != b;
  if constexpr (OP == LT) return a < b;
  if constexpr (OP == LE) return a <= b;
  if constexpr (OP == GT) return a > b;
  if constexpr (OP == GE) return a >= b;
}
