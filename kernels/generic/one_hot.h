// SPDX-License-Identifier: Apache-2.0
// One-hot encoding of classes.
#pragma once
#include "core/convert.h"
#include "core/tensor.h"

struct OneHotArgs {
  int64_t inner;  // elements of the input after the new axis
  int64_t classes;
  double on;
  double off;
};

// The class of an element; -1 for values that cannot be a class.
template <class T>
SHARED int64_t class_of(T x) {
  if constexpr (IsFloat<T>::value) return x > (T)-1 && x < (T)9e15 ? (int64_t)x : -1;
  if constexpr (!IsSigned<T>::value) return (uint64_t)x < (1ull << 62) ? (int64_t)x : -1;
  return (int64_t)x;
}
