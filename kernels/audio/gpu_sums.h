// SPDX-License-Identifier: Apache-2.0
// Sums over a signal by one block of threads, in a reproducible order.
#pragma once
#include "core/gpu.h"

// The sum of value(i) for i < n, returned to all threads of the block; their number is a power of two.
template <int THREADS, class F>
DEVICE double block_sum(int64_t n, const F &value) {
  __shared__ double sums[THREADS];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) sum += value(i);
  __syncthreads();
  sums[threadIdx.x] = sum;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}
