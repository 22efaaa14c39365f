// SPDX-License-Identifier: Apache-2.0
// form: values
#include "color/linear.h"
#include "core/gpu_chain.h"

template <class To, class From>
struct Linear : Local<To, From> {
  typedef LinearArgs Args;
  float mul, add;
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &) { mul = a.mul, add = a.add; }
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) out[c] = linear<typename To::T>(in[c], mul, add);
  }
};
