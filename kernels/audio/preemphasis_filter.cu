// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: preemphasis_filter_all<To0::T, From0::T>(l); 1024 elements of out[0] per block of 256 threads
#include "audio/preemphasis_filter.h"
#include "core/gpu.h"

// What is computed with, as on the CPU.
template <class Out, class In>
struct PreemphasisReal {
  typedef double type;
};
template <>
struct PreemphasisReal<float, float> {
  typedef float type;
};

template <class Out, class In>
DEVICE void preemphasis_filter_all(const Launch &l) {
  typedef typename PreemphasisReal<Out, In>::type Real;
  FOR_SAMPLES(sample, l) {
    const PreemphasisFilterArgs a = ((const PreemphasisFilterArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const In *x = in.as<In>();
    Out *y = l.tensors[0][sample].as<Out>();
    const int64_t n = volume_of(in);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
      const int64_t other = i ? i - 1 : element_before_first(a.border, n);
      const Real before = other < 0 ? (Real)0 : (Real)load(x + other);
      y[i] = saturate<Out>((Real)load(x + i) - (Real)a.coeff * before);
    }
  }
}
