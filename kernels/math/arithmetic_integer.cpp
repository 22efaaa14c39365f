// SPDX-License-Identifier: Apache-2.0
#include "math/arithmetic_loops.h"

template <int OP, class T>
CLONES static void compute(T *__restrict out, const T *a, const T *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = integer_operation<OP>(a[i], b[i]);
}

template <int OP, class T>
static void loop(void *out, const void *a, const void *b, int64_t n) {
  compute<OP>((T *)out, (const T *)a, (const T *)b, n);
}

template <int OP>
constexpr bool is_binary() {
  return OP <= MAX && OP != DIV;
}

Loop integer_loop(int operation, int dtype) {
  Loop found = nullptr;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>(dtype, [&](auto t) {
    found = select_loop(operation, [](auto op) -> Loop {
      constexpr int OP = decltype(op)::value;
      if constexpr (is_binary<OP>() || OP == NEG || OP == ABS || OP == INVERT) return loop<OP, decltype(t)>;
      return nullptr;
    });
  });
  return found;
}
