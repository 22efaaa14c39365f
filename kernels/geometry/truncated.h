// SPDX-License-Identifier: Apache-2.0
// Conversion without rounding, for crops and fill values.
#pragma once
#include "core/convert.h"

// Floats are truncated if Out is an integer, and clamped to the finite range of Out. NaN stays NaN, or becomes 0.
template <class Out, class In>
SHARED Out truncated(In x) {
  if constexpr (DTypeOf<Out>::value == BOOL) {
    return (float)x != 0.0f;
  } else if constexpr (DTypeOf<Out>::value == FLOAT16) {
    const float f = (float)x;
    return half(f > 65504.0f ? 65504.0f : f < -65504.0f ? -65504.0f : f);
  } else if constexpr (DTypeOf<Out>::value == FLOAT && DTypeOf<In>::value == FLOAT64) {
    constexpr double most = 3.4028234663852886e38;
    return (float)(x > most ? most : x < -most ? -most : x);
  } else if constexpr (IsFloat<In>::value && !IsFloat<Out>::value) {
    if constexpr (DTypeOf<In>::value == FLOAT64)
      return saturate<Out>(trunc(x));
    else
      return saturate<Out>(truncf((float)x));
  } else {
    return saturate<Out>(x);
  }
}
