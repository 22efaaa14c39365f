// SPDX-License-Identifier: Apache-2.0
// out[i] = in[i] - coeff * in[i - 1].
#pragma once
#include "core/convert.h"
#include "core/tensor.h"

enum PreemphasisBorder : int32_t { PREEMPHASIS_ZERO, PREEMPHASIS_CLAMP, PREEMPHASIS_REFLECT };

struct PreemphasisFilterArgs {
  float coeff;
  int32_t border;
};

// The type of the computation: float, as in DALI, unless the input has more.
template <class In>
struct PreemphasisReal {
  typedef float type;
};
template <>
struct PreemphasisReal<double> {
  typedef double type;
};

// The index of the element used before the first one; -1 for zero.
SHARED int64_t element_before_first(int border, int64_t n) {
  if (border == PREEMPHASIS_CLAMP) return 0;
  return border == PREEMPHASIS_REFLECT && n > 1 ? 1 : -1;
}
