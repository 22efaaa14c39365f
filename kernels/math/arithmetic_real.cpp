// SPDX-License-Identifier: Apache-2.0
#include "math/arithmetic_loops.h"

template <int OP, class T>
CLONES static void compute(T *__restrict out, const T *a, const T *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = real_operation<OP>(a[i], b[i]);
}

template <int OP, class T>
static void loop(void *out, const void *a, const void *b, int64_t n) {
  compute<OP>((T *)out, (const T *)a, (const T *)b, n);
}

Loop real_loop(int operation, int dtype) {
  Loop found = nullptr;
  for_types<float, double>(dtype, [&](auto t) {
    found = select_loop(operation, [](auto op) -> Loop {
      constexpr int OP = decltype(op)::value;
      constexpr bool is_bitwise = (OP >= BITAND && OP <= SHR) || OP == INVERT;
      if constexpr (!is_bitwise && !(OP >= EQ && OP <= GE)) return loop<OP, decltype(t)>;
      return nullptr;
    });
  });
  return found;
}

CLONES static void narrow_remainders(float *__restrict out, const double *a, const double *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)real_operation<MOD>(a[i], b[i]);
}

Loop narrow_remainder_loop() {
  return [](void *out, const void *a, const void *b, int64_t n) {
    narrow_remainders((float *)out, (const double *)a, (const double *)b, n);
  };
}
