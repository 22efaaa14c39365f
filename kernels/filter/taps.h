// SPDX-License-Identifier: Apache-2.0
// Sums of weighted rows in float32, from which all linear filters are made: along a row the taps are the same row,
// shifted by whole pixels.
#pragma once
#include "filter/rows.h"

constexpr int kMostTaps = 9;  // summed in registers at once

// Converts n elements; which loop does so for a type.
typedef void (*ToFloats)(float *to, const void *from, int64_t n);
ToFloats to_floats_from(int dtype);

// Adds rows one after the other to a sum of n elements, for which `memory` has room.
class RowSum {
 public:
  RowSum(float *memory, int64_t n) : sum_(memory), n_(n) {}
  void add(const float *row, float weight) {
    if (held_ == kMostTaps) flush(sum_);
    rows_[held_] = row, weights_[held_++] = weight;
  }
  // Writes the sum as elements of a type.
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
