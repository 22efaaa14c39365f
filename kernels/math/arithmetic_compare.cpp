// SPDX-License-Identifier: Apache-2.0
#include "math/arithmetic_loops.h"

template <int OP, class T>
CLONES static void loop(void *__restrict out, const void *a, const void *b, int64_t n) {
  bool *__restrict to = (bool *)out;
  const T *x = (const T *)a, *y = (const T *)b;
  for (int64_t i = 0; i < n; i++) to[i] = comparison<OP>(x[i], y[i]);
}

// Bitwise operations on booleans. A shift is one of integers, whose result is true if it is not 0.
template <int OP>
static void bool_loop(void *out, const void *a, const void *b, int64_t n) {
  uint8_t *to = (uint8_t *)out;
  const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
  for (int64_t i = 0; i < n; i++) {
    if constexpr (OP == BITAND) to[i] = x[i] & y[i];
    if constexpr (OP == BITOR) to[i] = x[i] | y[i];
    if constexpr (OP == BITXOR) to[i] = x[i] ^ y[i];
    if constexpr (OP == SHL) to[i] = x[i];
    if constexpr (OP == SHR) to[i] = x[i] & !y[i];
    if constexpr (OP == INVERT) to[i] = !x[i];
  }
}

template <class T>
static Loop find(int operation) {
  return select_loop(operation, [](auto op) -> Loop {
    constexpr int OP = decltype(op)::value;
    if constexpr (OP >= EQ && OP <= GE) return loop<OP, T>;
    return nullptr;
  });
}

Loop comparison_loop(int operation, int dtype) {
  if (dtype == kWide) return find<__int128>(operation);
  switch (dtype == BOOL ? operation : -1) {
    case BITAND:
      return bool_loop<BITAND>;
    case BITOR:
      return bool_loop<BITOR>;
    case BITXOR:
      return bool_loop<BITXOR>;
    case SHL:
      return bool_loop<SHL>;
    case SHR:
      return bool_loop<SHR>;
    case INVERT:
      return bool_loop<INVERT>;
  }
  Loop found = nullptr;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double, bool>(
      dtype, [&](auto t) { found = find<decltype(t)>(operation); });
  return found;
}
