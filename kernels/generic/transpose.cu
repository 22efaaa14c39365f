// SPDX-License-Identifier: Apache-2.0
// form: places
// axes: perm
// begin: start
#include "core/gpu_chain.h"
#include "generic/transpose.h"

template <class To, class From>
struct Transpose : Local<To, From> {
  typedef TransposeArgs Args;
  int32_t from[To::N], start[From::N];  // input axis of each output axis; first index along each input axis
  DEVICE void begin(const Args &a, const Tensor &, const Tensor &) {
#pragma unroll
    for (int d = 0; d < To::N; d++) from[d] = a.perm[To::axis(d)], start[d] = (int32_t)a.start[From::axis(d)];
  }
  DEVICE bool locate(int32_t (&at)[To::N]) const {
    int32_t in[To::N];
#pragma unroll
    for (int e = 0; e < To::N; e++) {
      in[e] = start[e];
#pragma unroll
      for (int d = 0; d < To::N; d++)
        if (from[d] == From::axis(e)) in[e] += at[d];
    }
#pragma unroll
    for (int e = 0; e < To::N; e++) at[e] = in[e];
    return true;
  }
};
