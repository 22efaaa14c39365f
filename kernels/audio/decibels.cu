// SPDX-License-Identifier: Apache-2.0
// form: values
#include "audio/decibels.h"
#include "core/gpu_chain.h"

template <class To, class From>
struct Decibels : Local<To, From> {
  typedef DecibelsArgs Args;
  float unit, multiplier, smallest;
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &) {
    unit = 1 / a.reference, multiplier = a.multiplier, smallest = a.smallest;
  }
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = decibels(in[c], unit, multiplier, smallest);
  }
};
