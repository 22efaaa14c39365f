// SPDX-License-Identifier: Apache-2.0
// Sums of weighted rows in float32, the basis of all linear filters: the taps along a row are the same row, shifted by
// whole pixels.
#pragma once
#include "filter/rows.h"

constexpr int kMostTaps = 9;  // rows summed in registers at once

// Converts n elements to floats. to_floats_from finds the function for a type.
typedef void (*ToFloats)(float *to, const void *from, int64_t n);
ToFloats to_floats_from(int dtype);

// A weighted sum of rows of n elements. `memory`: room for the sum.
class RowSum {
 public:
  RowSum(float *memory, int64_t n) : sum_(memory), n_(n) {}
  void add(const float *row, float weight) {
    if (held_ == kMostTaps) flush(sum_);
    rows_[held_] = row, weights_[held_++] = weight;
  }
  // Writes the sum, converted to `dtype`.
  void finish(void *to, int dtype);

 private:
  template <class Out>
  void flush(Out *to);
  float *sum_;
  int64_t n_;
  const float *rows_[kMostTaps];
  float weights_[kMostTaps];
  int held_ = 0;
  bool begins_ = true;
};
