// SPDX-License-Identifier: Apache-2.0
// A window of a sample, which may reach out of it, converted to another type.
#pragma once
#include "core/convert.h"

// What stands where the window reaches out of the input. The names of the reflections say how 1 0 | 0 1 and 1 0 1 are
// met.
enum Border : int32_t { BORDER_CONSTANT, BORDER_EDGE, BORDER_REFLECT_1001, BORDER_REFLECT_101, BORDER_WRAP };

struct WindowArgs {
  int64_t start[kMaxDims];   // where the first element of the output lies in the whole input
  int64_t extent[kMaxDims];  // of the whole input
  int64_t origin[kMaxDims];  // where the part of the input lies that is there
  int32_t border;
  int32_t channels;  // the axis that counts channels for `fill`; -1: one value for all
  const float *fill;
};

// The index inside [0, n) that stands at index i; -1: a constant.
SHARED int64_t border_index(int64_t i, int64_t n, int border) {
  if (i >= 0 && i < n) return i;
  switch (border) {
    case BORDER_EDGE:
      return i < 0 ? 0 : n - 1;
    case BORDER_REFLECT_1001: {
      int64_t period = 2 * n, r = (i % period + period) % period;
      return r < n ? r : period - 1 - r;
    }
    case BORDER_REFLECT_101: {
      if (n == 1) return 0;
      int64_t period = 2 * n - 2, r = (i % period + period) % period;
      return r < n ? r : period - r;
    }
    case BORDER_WRAP:
      return (i % n + n) % n;
    default:
      return -1;
  }
}
