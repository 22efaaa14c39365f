// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_units.h"
#include "generic/cat.h"

// All pieces in units of U; each thread takes units of the output one block's width apart.
template <class U, int K>
DEVICE void cat_sample(const Launch &l, int sample, const CatArgs &a) {
  const void *from[K];
  uint32_t end[K];  // where in a row of pieces that of input k ends, in units
  uint32_t row = 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    const Tensor t = l.tensors[1 + k][sample];
    from[k] = t.data;
    row += (uint32_t)(cat_piece(t, a.axis) / sizeof(U));
    end[k] = row;
  }
  const Tensor out = l.tensors[0][sample];
  const uint32_t total = (uint32_t)(cat_piece(out, 0) / sizeof(U));
  U *to = (U *)out.data;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const uint32_t piece = i / row, at = i - piece * row;
    uint32_t begin = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (at >= begin && at < end[k]) to[i] = unit_at<U>(from[k], (int64_t)piece * (end[k] - begin) + at - begin);
      begin = end[k];
    }
  }
}

// BYTES divides all pieces. Memory from outside may begin anywhere: then its elements of SIZE bytes are moved.
template <int BYTES, int SIZE, int K>
DEVICE void cat_all(const Launch &l) {
  typedef typename UnitOf<BYTES>::type U;
  FOR_SAMPLES(sample, l) {
    const CatArgs a = ((const CatArgs *)l.args[0])[sample];
    bool aligned = is_aligned<U>(l.tensors[0][sample].data);
#pragma unroll
    for (int k = 0; k < K; k++) aligned = aligned && is_aligned<U>(l.tensors[1 + k][sample].data);
    if (aligned)
      cat_sample<U, K>(l, sample, a);
    else
      cat_sample<typename UnitOf<SIZE>::type, K>(l, sample, a);
  }
}
