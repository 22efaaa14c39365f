// SPDX-License-Identifier: Apache-2.0
// Sums and means along some axes.
#pragma once
#include "reductions/reduce_ops.h"

struct SumArgs {
  uint8_t reduced[kMaxDims];  // per axis: whether it is reduced
  int32_t is_mean;            // else a sum
};

template <class T>
SHARED constexpr bool is_whole() {
  return !IsFloat<T>::value;
}

// Integer sums are exact modulo 2^64; but for float outputs, sums of 64-bit integers could overflow.
template <class In, class Out>
SHARED constexpr bool sums_whole() {
  return is_whole<In>() && (is_whole<Out>() || sizeof(In) < 8);
}

// Converts a sum to the output. Integer outputs wrap around; integer means are truncated.
template <class Out, class In>
SHARED Out finish_sum(uint64_t sum, int64_t count, bool is_mean) {
  if constexpr (is_whole<Out>()) {
    if (!is_mean) return (Out)sum;
    if (count == 0) return 0;
    return IsSigned<In>::value ? (Out)((int64_t)sum / count) : (Out)(sum / (uint64_t)count);
  } else {
    const double s = IsSigned<In>::value ? (double)(int64_t)sum : (double)sum;
    return (Out)(is_mean ? s / (double)count : s);
  }
}
template <class Out, class In>
SHARED Out finish_sum(double sum, int64_t count, bool is_mean) {
  return (Out)(is_mean ? sum / (double)count : sum);
}
