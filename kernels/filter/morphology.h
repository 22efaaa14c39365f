// SPDX-License-Identifier: Apache-2.0
// Erosion and dilation: the smallest or largest element under a rectangle.
#pragma once
#include "core/convert.h"
#include "filter/border.h"

struct MorphologyArgs {
  int32_t size[2], anchor[2];  // of the rectangle, along H and W
  int32_t border;              // CONSTANT ignores what lies outside
  int32_t dilates;             // dilation; else erosion
  int32_t iterations;
  int32_t n_outer;  // axes before H
};

// The neutral value: no value is worse.
template <class T>
SHARED T worst(bool dilates) {
  if constexpr (DTypeOf<T>::value == FLOAT)
    return (dilates ? -1e38f : 1e38f) * 1e38f;  // infinite
  else
    return dilates ? (T)0 : (T)Range<T>::hi;
}

template <bool DILATES, class T>
SHARED T better(T a, T b) {
  return (DILATES ? a > b : a < b) ? a : b;
}
