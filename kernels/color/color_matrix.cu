// SPDX-License-Identifier: Apache-2.0
// form: pixels
#include "color/color_matrix.h"
#include "core/gpu_chain.h"

template <class To, class From>
struct ColorMatrix : Local<To, From> {
  typedef ColorMatrixArgs Args;
  Args a;
  DEVICE void begin(const Args &args, const Tensor &, const Tensor &) { a = args; }
  DEVICE void map(typename To::T (&out)[To::C], const typename From::T (&in)[From::C], int) const {
    static_assert(To::C == 3 && From::C == 3, "");
#pragma unroll
    for (int c = 0; c < 3; c++)
      out[c] = color_matrix_row<typename To::T>(in[0], in[1], in[2], a.matrix + 3 * c, a.offset[c]);
  }
};
