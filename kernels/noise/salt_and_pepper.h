// SPDX-License-Identifier: Apache-2.0
// Some pixels, or elements, become very bright or very dark.
#pragma once
#include "noise/noise.h"

struct SaltAndPepperArgs {
  uint64_t key, position;
  // Of 2^32 random words `noise` disturb, the first `salt` of them by `bright`, the others by `dark`.
  int64_t noise, salt;
  double bright, dark;
  int32_t inner;  // the channels of a pixel lie side by side if 1, else one behind the other in planes
  int32_t channels;
  uint32_t epoch;
};

template <class T>
SHARED T disturbed(T x, uint32_t word, int64_t noise, int64_t salt, T bright, T dark) {
  const int64_t w = word;
  return w >= noise ? x : w < salt ? bright : dark;
}
