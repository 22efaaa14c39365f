// SPDX-License-Identifier: Apache-2.0
// Makes some pixels, or elements, very bright or very dark.
#pragma once
#include "noise/noise.h"

struct SaltAndPepperArgs {
  uint64_t key, position;
  // Of the 2^32 random words, the first `noise` ones disturb: the first `salt` of them by `bright`, the others by
  // `dark`.
  int64_t noise, salt;
  double bright, dark;
  int32_t inner;  // 1: the channels of a pixel are interleaved; 0: planes
  int32_t channels;
  uint32_t epoch;
};

template <class T>
SHARED T disturbed(T x, uint32_t word, int64_t noise, int64_t salt, T bright, T dark) {
  const int64_t w = word;
  return w >= noise ? x : w < salt ? bright : dark;
}
