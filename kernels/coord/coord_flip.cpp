// SPDX-License-Identifier: Apache-2.0
#include "coord/coord_flip.h"

#include "core/kernel.h"

template <int kDims>
CLONES static void flip(float *__restrict out, const float *__restrict in, int64_t n, const CoordFlipArgs &args) {
  const CoordFlipArgs a = args;
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < kDims; d++) out[i * kDims + d] = a.sign[d] * in[i * kDims + d] + a.offset[d];
}

static void run(const Tensor *out, const Tensor *in, const CoordFlipArgs &a, Scratch &) {
  auto *f = in->shape[1] == 1 ? flip<1> : in->shape[1] == 2 ? flip<2> : flip<3>;
  f(out->as<float>(), in->as<float>(), in->shape[0], a);
}

EXPORT_KERNEL(coord_flip, CoordFlipArgs, run)
