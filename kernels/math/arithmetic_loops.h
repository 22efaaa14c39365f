// SPDX-License-Identifier: Apache-2.0
// Loops over blocks of operands of one type, selected by operation and type.
#pragma once
#include <utility>

#include "core/kernel.h"
#include "math/arithmetic.h"

typedef void (*Loop)(void *out, const void *a, const void *b, int64_t n);

// Null if the type does not have the operation.
Loop integer_loop(int operation, int dtype);
Loop real_loop(int operation, int dtype);
Loop comparison_loop(int operation, int dtype);
// Remainders of float64, stored as float32.
Loop narrow_remainder_loop();

// Selects by operation from the table make<0>(), make<1>(), ...
template <class Make, int... OP>
Loop select_loop(int operation, Make make, std::integer_sequence<int, OP...>) {
  Loop table[] = {make(std::integral_constant<int, OP>())...};
  return table[operation];
}
template <class Make>
Loop select_loop(int operation, Make make) {
  return select_loop(operation, make, std::make_integer_sequence<int, N_OPERATIONS>());
}
