// SPDX-License-Identifier: Apache-2.0
// form: values
#include "core/gpu_chain.h"
#include "generic/cast.h"

template <class To, class From>
struct Cast : Local<To, From> {
  typedef CastArgs Args;
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&in)[From::C], int) const {
#pragma unroll
    for (int c = 0; c < To::C; c++) {
      if constexpr (DTypeOf<typename To::T>::value == DTypeOf<typename From::T>::value)
        out[c] = in[c];
      else
        out[c] = saturate<typename To::T>(in[c]);
    }
  }
};
