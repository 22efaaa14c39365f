// SPDX-License-Identifier: Apache-2.0
// form: places
// begin: start
#include "core/gpu_chain.h"
#include "geometry/flip.h"

template <class To, class From>
struct Flip : Local<To, From> {
  typedef FlipArgs Args;
  int32_t first[To::N], step[To::N];
  DEVICE void begin(const Args &a, const Tensor &out, const Tensor &) {
#pragma unroll
    for (int d = 0; d < To::N; d++) {
      const int axis = To::axis(d);
      const bool turned = a.flip[axis];
      first[d] = (int32_t)(a.start[axis] + (turned ? To::extent(out, d) - 1 : 0));
      step[d] = turned ? -1 : 1;
    }
  }
  DEVICE bool locate(int32_t (&at)[To::N]) const {
#pragma unroll
    for (int d = 0; d < To::N; d++) at[d] = first[d] + step[d] * at[d];
    return true;
  }
};
