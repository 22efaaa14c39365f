// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: one_hot_all<To0::T, From0::T>(l); 1024 elements of out[0] per block of 256 threads
#include "core/gpu.h"
#include "generic/one_hot.h"

template <class Out, class In>
DEVICE void one_hot_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const OneHotArgs a = ((const OneHotArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample];
    const In *from = l.tensors[1][sample].template as<const In>();
    const Out on = saturate<Out>(a.on), off = saturate<Out>(a.off);
    const uint32_t total = (uint32_t)volume_of(out), inner = (uint32_t)a.inner, classes = (uint32_t)a.classes;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
      const uint32_t outer = i / inner, k = outer % classes;
      const bool is = class_of(from[(outer / classes) * (int64_t)inner + (i - outer * inner)]) == (int64_t)k;
      out.template as<Out>()[i] = is ? on : off;
    }
  }
}
