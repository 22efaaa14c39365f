// SPDX-License-Identifier: Apache-2.0
// out = mul * in + add, saturated to the output type.
#pragma once
#include "core/convert.h"

struct LinearArgs {
  float mul, add;
};

template <class Out, class In>
SHARED Out linear(In x, float mul, float add) {
  return saturate<Out>(to_float(x) * mul + add);
}
