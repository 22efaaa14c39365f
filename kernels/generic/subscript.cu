// SPDX-License-Identifier: Apache-2.0
// form: own
// A thread makes 16 bytes of the output, which is dense. Where the input is contiguous, forwards or backwards, it also
// reads 16 bytes at once.
#include "core/gpu_runs.h"
#include "generic/subscript.h"

constexpr int bits_in(unsigned x) { return x ? (int)(x & 1) + bits_in(x >> 1) : 0; }

// BEGINS: bit mask of the N output axes at which a group begins. Axes across which the stride is constant in all
// samples form a group.
template <class T, int N, unsigned BEGINS>
struct Groups {
  static constexpr int kGroups = bits_in(BEGINS);
  uint32_t extent[kGroups];
  int64_t step[kGroups];
  const T *base;

  DEVICE void begin(const Tensor &out, const Tensor &in, const SubscriptArgs &a) {
    int g = -1;
#pragma unroll
    for (int d = 0; d < N; d++) {
      if (BEGINS >> d & 1) extent[++g] = 1, step[g] = 1;
      extent[g] *= (uint32_t)out.shape[d];
      if (out.shape[d] != 1) step[g] = a.step[d];
    }
    base = (const T *)in.data + a.base;
  }

  // Reads V elements from element `first` of the output on, of which `total - first` exist.
  template <int V>
  DEVICE void read(T (&x)[V], uint32_t first, uint32_t total) const {
    uint32_t at[kGroups];
    const T *p = base;
    uint32_t left = first;
#pragma unroll
    for (int g = kGroups - 1; g >= 0; g--) {
      const uint32_t above = g ? left / extent[g] : 0;
      at[g] = left - above * extent[g];
      p += at[g] * step[g];
      left = above;
    }
    constexpr int kLast = kGroups - 1;
    if (at[kLast] + V <= extent[kLast] && (step[kLast] == 1 || step[kLast] == -1)) {
      if (step[kLast] == 1) return load_run<T, V>(x, p, 0, V);
      T reversed[V] __attribute__((aligned(16)));
      load_run<T, V>(reversed, p - (V - 1), 0, V);
#pragma unroll
      for (int i = 0; i < V; i++) x[i] = reversed[V - 1 - i];
      return;
    }
#pragma unroll
    for (int i = 0; i < V; i++) {
      if (first + i >= total) return;
      x[i] = load(p);
      p += step[kLast], at[kLast]++;
#pragma unroll
      for (int g = kLast; g > 0; g--) {
        if (at[g] < extent[g]) break;
        p += step[g - 1] - (int64_t)extent[g] * step[g];
        at[g] = 0, at[g - 1]++;
      }
    }
  }
};

template <class T, int N, unsigned BEGINS>
DEVICE void subscript_all(const Launch &l) {
  constexpr int V = 16 / sizeof(T), U = Groups<T, N, BEGINS>::kGroups == 1 ? 4 : 1;  // runs that are read at once
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample];
    const uint32_t total = (uint32_t)volume_of(out);
    if (!total) continue;
    Groups<T, N, BEGINS> groups;
    groups.begin(out, l.tensors[1][sample], ((const SubscriptArgs *)l.args[0])[sample]);
    const uint32_t runs = (total + V - 1) / V;
    for (uint32_t i = blockIdx.x * blockDim.x * U + threadIdx.x; i < runs; i += gridDim.x * blockDim.x * U) {
      T x[U][V] __attribute__((aligned(16)));
#pragma unroll
      for (int k = 0; k < U; k++) {
        const uint32_t run = i + k * blockDim.x;
        if (run < runs) groups.template read<V>(x[k], run * V, total);
      }
#pragma unroll
      for (int k = 0; k < U; k++) {
        const uint32_t run = i + k * blockDim.x;
        if (run < runs)
          store_run<T, V>((T *)out.data + run * V, x[k], 0, (int)(total - run * V < V ? total - run * V : V));
      }
    }
  }
}
