// SPDX-License-Identifier: Apache-2.0
// The weights of one axis, ready for the loops: output j is the sum of weights[j * stride + k] * input[first[j] + k].
#pragma once
#include <cstdint>
#include <vector>

#include "resample/resample.h"

// What a table was made for.
struct TapsKey {
  ResampleAxis axis;
  int64_t in_origin, in_length, out_origin, out_length;
};

struct Taps {
  TapsKey key;
  bool valid = false, fixed_valid = false;
  int n;                       // outputs
  int k;                       // taps per output; unused ones weigh 0
  int stride;                  // k rounded up to even
  int lo, hi;                  // the part of the input's window that is read
  std::vector<int32_t> first;  // relative to the input's window; first + k never leaves it
  std::vector<float> weights;
  std::vector<int16_t> fixed;  // the weights times 2^14; each output's add up to 2^14 exactly

  // `fixed` for the loops of one instruction set (1 AVX2, 2 AVX-512), in a form described there.
  // By the rules of Pillow and PyTorch: weights times 2^exact_bits. Where they fit, `fixed` has them too.
  std::vector<int32_t> exact;
  int exact_bits = 0;

  int prepared_for = 0, group = 0, group_channels = 0;
  bool two;
  std::vector<int16_t> permutation, group_weights;
  std::vector<int32_t> group_base;
};

constexpr int kWeightBits = 14;

// Tables for output samples out_origin .. out_origin + n - 1, all of whose inputs must lie in the window.
// They are kept by each thread, one per axis, until another geometry is asked for.
Taps &taps_for(int slot, const ResampleAxis &axis, int64_t in_origin, int64_t in_length, int64_t out_origin, int64_t n);
void make_fixed(Taps &t);
// For an axis that has a rule.
void build_exact(Taps &t);
