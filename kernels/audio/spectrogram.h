// SPDX-License-Identifier: Apache-2.0
// Power spectra of windows of a signal.
#pragma once
#include "core/tensor.h"

struct SpectrogramArgs {
  const float *window;  // window_length
  int32_t nfft, window_length, window_step;
  int32_t first;       // where the first window begins; negative if windows are centred
  int32_t reflect;     // mirror the signal about its outermost elements beyond its ends, else use 0
  int32_t power;       // 1 or 2
  int32_t time_first;  // out is (windows, bins), else (bins, windows)
};

// The element of a signal of length n at position i if the signal is mirrored about its ends.
SHARED int64_t mirrored(int64_t i, int64_t n) {
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}
