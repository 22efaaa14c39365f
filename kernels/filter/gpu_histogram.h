// SPDX-License-Identifier: Apache-2.0
// Histograms of bytes and tables applied to bytes by blocks of 256 threads.
#pragma once
#include "core/gpu.h"

constexpr int kCounters = 256, kWarps = kCounters / 32;  // threads

// For n bytes: calls g(index, index modulo C, 16 bytes) for each aligned run of 16 bytes, and f(index) for the other
// bytes.
template <int C, class F, class G>
DEVICE void each_byte_of(const uint8_t *in, int64_t n, bool aligned, const F &f, const G &g) {
  int64_t lead = (int64_t)((0ull - (unsigned long long)in) & 15);
  if (!aligned || lead > n) lead = n;
  const int64_t runs = (n - lead) / 16, behind = lead + runs * 16;
  for (int64_t i = threadIdx.x; i < lead; i += kCounters) f(i);
#pragma unroll 2
  for (int64_t r = threadIdx.x; r < runs; r += kCounters) {
    const int64_t at = lead + 16 * r;
    g(at, (int)((uint32_t)at % (uint32_t)C), *(const uint4 *)(in + at));
  }
  for (int64_t i = behind + threadIdx.x; i < n; i += kCounters) f(i);
}

// Adds the histograms of n pixels to counts[C][256]: C interleaved channels or, if C is 1, bytes `step` apart. Each
// warp has its own histograms.
template <int C>
DEVICE void count_block(const uint8_t *in, int64_t n, int64_t step, uint32_t *counts) {
  __shared__ uint32_t copies[kWarps][C * 256];
  __syncthreads();
  for (int i = threadIdx.x; i < kWarps * C * 256; i += kCounters) (&copies[0][0])[i] = 0;
  __syncthreads();
  uint32_t *own = copies[threadIdx.x / 32];
  if (C == 1 && step != 1) {
    for (int64_t i = threadIdx.x; i < n; i += kCounters) atomicAdd(&own[load(in + i * step)], 1u);
  } else {
    each_byte_of<C>(
        in, n * C, true, [&](int64_t i) { atomicAdd(&own[(uint32_t)i % (uint32_t)C * 256 + load(in + i)], 1u); },
        [&](int64_t, int c, uint4 x) {
          const uint32_t words[4] = {x.x, x.y, x.z, x.w};
          uint32_t *of[C];
#pragma unroll
          for (int k = 0; k < C; k++) of[k] = own + (c + k < C ? c + k : c + k - C) * 256;
#pragma unroll
          for (int i = 0; i < 16; i++) atomicAdd(&of[i % C][words[i / 4] >> (i % 4 * 8) & 255], 1u);
        });
  }
  __syncthreads();
  for (int i = threadIdx.x; i < C * 256; i += kCounters) {
    uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < kWarps; k++) sum += copies[k][i];
    if (sum) atomicAdd(&counts[i], sum);
  }
}

// out = tables[channel][in] for n pixels of C interleaved channels or, if C is 1, for bytes `step` apart.
template <int C>
DEVICE void look_up_block(uint8_t *out, const uint8_t *in, int64_t n, int64_t step, const uint8_t *tables) {
  if (C == 1 && step != 1) {
    for (int64_t i = threadIdx.x; i < n; i += kCounters) out[i * step] = tables[load(in + i * step)];
    return;
  }
  const bool aligned = (((unsigned long long)in ^ (unsigned long long)out) & 15) == 0;
  each_byte_of<C>(
      in, n * C, aligned, [&](int64_t i) { out[i] = tables[(uint32_t)i % (uint32_t)C * 256 + load(in + i)]; },
      [&](int64_t at, int c, uint4 x) {
        uint32_t words[4] = {x.x, x.y, x.z, x.w};
        const uint8_t *of[C];
#pragma unroll
        for (int k = 0; k < C; k++) of[k] = tables + (c + k < C ? c + k : c + k - C) * 256;
#pragma unroll
        for (int w = 0; w < 4; w++) {
          uint32_t word = 0;
#pragma unroll
          for (int j = 0; j < 4; j++) word |= (uint32_t)of[(4 * w + j) % C][words[w] >> (8 * j) & 255] << (8 * j);
          words[w] = word;
        }
        *(uint4 *)(out + at) = make_uint4(words[0], words[1], words[2], words[3]);
      });
}

// Inclusive prefix sum of x over the threads of the block.
DEVICE uint32_t sum_to_here(uint32_t x) {
  __shared__ uint32_t of_warps[kWarps];
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const uint32_t y = __shfl_up_sync(0xffffffffu, x, by);
    if (lane >= by) x += y;
  }
  if (lane == 31) of_warps[warp] = x;
  __syncthreads();
  for (int i = 0; i < warp; i++) x += of_warps[i];
  __syncthreads();
  return x;
}
