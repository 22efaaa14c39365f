// SPDX-License-Identifier: Apache-2.0
// The largest of many numbers, across all blocks of threads.
#pragma once
#include "core/gpu.h"

// Maps numbers to integers of the same order; 0 stands for none, and for NaN.
DEVICE uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x);
  return x == x ? (bits >> 31 ? ~bits : bits | 0x80000000u) : 0;
}
DEVICE float value_of(uint32_t key) {
  if (key == 0) return -3.402823466e38f;
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

// Called by all threads of a block, each with its own largest key; `to` must be 0 at first.
DEVICE void keep_largest(uint32_t *to, uint32_t key) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) key = max(key, __shfl_xor_sync(~0u, key, by));
  if (threadIdx.x % 32 == 0 && key) atomicMax(to, key);
}
