// SPDX-License-Identifier: Apache-2.0
// Classes as vectors in which one element is on.
#pragma once
#include "core/convert.h"
#include "core/tensor.h"

struct OneHotArgs {
  int64_t inner;  // elements of the input behind the new axis
  int64_t classes;
  double on;
  double off;
};

// The class that an element stands for; none if it is no number that a class could have.
template <class T>
SHARED int64_t class_of(T x) {
  if constexpr (IsFloat<T>::value) return x > (T)-1 && x < (T)9e15 ? (int64_t)x : -1;
  if constexpr (!IsSigned<T>::value) return (uint64_t)x < (1ull << 62) ? (int64_t)x : -1;
  return (int64_t)x;
}
