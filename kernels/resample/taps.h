// SPDX-License-Identifier: Apache-2.0
// Weights of an axis: output j is the sum of weights[j * stride + k] * input[first[j] + k].
#pragma once
#include <cstdint>
#include <vector>

#include "resample/resample.h"

// Identifies a table.
struct TapsKey {
  ResampleAxis axis;
  int64_t in_origin, in_length, out_origin, out_length;
};

struct Taps {
  TapsKey key;
  bool valid = false, fixed_valid = false;
  int n;                       // outputs
  int k;                       // taps per output; unused ones have the weight 0
  int stride;                  // k rounded up to even
  int lo, hi;                  // range of the input's window that is read
  std::vector<int32_t> first;  // relative to the input's window; first + k is never outside
  std::vector<float> weights;
  std::vector<int16_t> fixed;  // weights times 2^14, with the sum 2^14 for each output

  // By the rules of Pillow and PyTorch: weights times 2^exact_bits. `fixed` has them too if they fit.
  std::vector<int32_t> exact;
  int exact_bits = 0;
  // `fixed` or `exact` for the loops of one instruction set, prepared_for, in a format described there.
  int prepared_for = 0, group = 0, group_channels = 0;
  bool two;
  std::vector<int16_t> permutation, group_weights;
  std::vector<int32_t> group_base;
};

constexpr int kWeightBits = 14;

// Tables for the output samples out_origin .. out_origin + n - 1, whose inputs must all be in the window. Each thread
// keeps one table per axis and reuses it until another geometry is requested.
Taps &taps_for(int slot, const ResampleAxis &axis, int64_t in_origin, int64_t in_length, int64_t out_origin, int64_t n);
void make_fixed(Taps &t);
// For an axis with a rule other than DALI's.
void build_exact(Taps &t);
