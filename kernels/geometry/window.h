// SPDX-License-Identifier: Apache-2.0
// A window of a sample, which may exceed it, converted to another type.
#pragma once
#include "core/convert.h"

// Values outside of the input. BORDER_REFLECT_1001 repeats the edge (1 0 | 0 1), BORDER_REFLECT_101 does not (1 0 1).
enum Border : int32_t { BORDER_CONSTANT, BORDER_EDGE, BORDER_REFLECT_1001, BORDER_REFLECT_101, BORDER_WRAP };

struct WindowArgs {
  int64_t start[kMaxDims];   // index in the whole input of the first output element
  int64_t extent[kMaxDims];  // of the whole input
  int64_t origin[kMaxDims];  // begin of the stored part of the input
  int32_t border;
  int32_t channels;  // channel axis of `fill`; -1: one value for all
  const float *fill;
};

// The index in [0, n) that stands for index i; -1 for BORDER_CONSTANT.
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
