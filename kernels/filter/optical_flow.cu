// SPDX-License-Identifier: Apache-2.0
// Converts between dense pictures and the surfaces of the optical flow engine. Arguments: one OpticalFlowArgs per row
// of blocks (blockIdx.y).
#include "core/gpu_runs.h"
#include "filter/optical_flow.h"

DEVICE OpticalFlowArgs flow_args(const Launch &l) { return ((const OpticalFlowArgs *)l.args[0])[blockIdx.y]; }

// Converts a frame to gray, or to red, green, blue and 255. A thread takes 4 pixels.
extern "C" __global__ void flow_frames(Launch l) {
  const OpticalFlowArgs a = flow_args(l);
  const uint32_t runs = (a.width + 3) / 4;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < runs * a.height; i += gridDim.x * blockDim.x) {
    const uint32_t row = i / runs, x = (i - row * runs) * 4;
    const int n = (int)(a.width - x) < 4 ? (int)(a.width - x) : 4;  // rows of surfaces have room for all 4
    const uint8_t *from = (const uint8_t *)a.dense + ((int64_t)row * a.width + x) * a.channels;
    uint8_t *to = (uint8_t *)a.surface + row * a.pitch;
    if (a.channels == 1) {
      uint8_t gray[4] __attribute__((aligned(4))) = {};
      load_run(gray, from, 0, n);
      *(uint32_t *)(to + x) = *(const uint32_t *)gray;
      continue;
    }
    uint8_t rgb[12] __attribute__((aligned(16))) = {};
    load_run(rgb, from, 0, 3 * n);
    uint32_t w[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint8_t *p = rgb + 3 * k;
      w[k] = (uint32_t)p[a.reversed ? 2 : 0] | (uint32_t)p[1] << 8 | (uint32_t)p[a.reversed ? 0 : 2] << 16 | 255u << 24;
    }
    *(uint4 *)(to + 4 * x) = make_uint4(w[0], w[1], w[2], w[3]);
  }
}

// Converts the engine's vectors to floats.
extern "C" __global__ void flow_vectors(Launch l) {
  const OpticalFlowArgs a = flow_args(l);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (uint32_t)(a.width * a.height);
       i += gridDim.x * blockDim.x) {
    const uint32_t row = i / (uint32_t)a.width, x = i - row * a.width;
    const short2 v = *(const short2 *)((const uint8_t *)a.surface + row * a.pitch + 4 * x);
    ((float2 *)a.dense)[i] = make_float2(v.x * kFlowUnit, v.y * kFlowUnit);
  }
}

// Converts floats to the engine's hints.
extern "C" __global__ void flow_hints(Launch l) {
  const OpticalFlowArgs a = flow_args(l);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (uint32_t)(a.width * a.height);
       i += gridDim.x * blockDim.x) {
    const uint32_t row = i / (uint32_t)a.width, x = i - row * a.width;
    const float *from = (const float *)a.dense + 2 * (int64_t)i;
    const short2 v = make_short2(saturate<int16_t>(from[0] / kFlowUnit), saturate<int16_t>(from[1] / kFlowUnit));
    *(short2 *)((uint8_t *)a.surface + row * a.pitch + 4 * x) = v;
  }
}
