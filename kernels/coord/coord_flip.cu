// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: coord_flip_all(l); 128 elements of in[0] per block of 128 threads
#include "coord/coord_flip.h"
#include "core/gpu.h"

// One thread per coordinate.
DEVICE void coord_flip_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const CoordFlipArgs *a = (const CoordFlipArgs *)l.args[0] + sample;
    const Tensor in = l.tensors[1][sample];
    const float *from = in.as<float>();
    float *to = l.tensors[0][sample].as<float>();
    const int64_t n = volume_of(in);
    const uint32_t dims = (uint32_t)in.shape[1];
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      const uint32_t d = (uint32_t)(i % dims);
      to[i] = a->sign[d] * load(from + i) + a->offset[d];
    }
  }
}
