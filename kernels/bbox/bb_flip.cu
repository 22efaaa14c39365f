// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: bb_flip_all(l); 256 elements of in[0] per block of 64 threads
#include "bbox/bb_flip.h"
#include "core/gpu.h"

// One thread per box, which is read and written as 16 bytes.
DEVICE void bb_flip_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const BbFlipArgs a = ((const BbFlipArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const float4 *boxes = in.as<float4>();
    float4 *flipped = l.tensors[0][sample].as<float4>();
    const int64_t n = volume_of(in) / 4;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      const float4 b = boxes[i];
      const Box4 x = bb_flip(Box4{{b.x, b.y, b.z, b.w}}, a);
      flipped[i] = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
    }
  }
}
