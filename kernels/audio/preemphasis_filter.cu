// SPDX-License-Identifier: Apache-2.0
// form: own
// launch: preemphasis_filter_all<To0::T, From0::T>(l); 8192 elements of out[0] per block of 256 threads
#include "audio/preemphasis_filter.h"
#include "core/gpu_runs.h"

constexpr int kPreemphasisRun = 4, kPreemphasisAtOnce = 2;  // consecutive elements, and runs per thread

template <class Out, class In>
DEVICE void preemphasis_filter_all(const Launch &l) {
  typedef typename PreemphasisReal<In>::type Real;
  constexpr int V = kPreemphasisRun, U = kPreemphasisAtOnce;
  FOR_SAMPLES(sample, l) {
    const PreemphasisFilterArgs a = ((const PreemphasisFilterArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    const In *x = in.as<In>();
    Out *y = l.tensors[0][sample].as<Out>();
    const int64_t n = volume_of(in), other = element_before_first(a.border, n);
    for (int64_t first = (int64_t)blockIdx.x * (blockDim.x * V * U) + threadIdx.x * V; first < n;
         first += (int64_t)gridDim.x * (blockDim.x * V * U)) {
      In values[U][V] __attribute__((aligned(16))), before[U];
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * (blockDim.x * V);
        if (i >= n) continue;
        load_run(values[k], x + i, 0, n - i < V ? (int)(n - i) : V);
        before[k] = i || other >= 0 ? load(x + (i ? i - 1 : other)) : (In)0;
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const int64_t i = first + k * (blockDim.x * V);
        if (i >= n) continue;
        Out filtered[V] __attribute__((aligned(16)));
#pragma unroll
        for (int j = 0; j < V; j++)
          filtered[j] = saturate<Out>((Real)values[k][j] - (Real)a.coeff * (Real)(j ? values[k][j - 1] : before[k]));
        if (!i && other < 0) filtered[0] = saturate<Out>(values[k][0]);  // with all its digits
        store_run(y + i, filtered, 0, n - i < V ? (int)(n - i) : V);
      }
    }
  }
}
