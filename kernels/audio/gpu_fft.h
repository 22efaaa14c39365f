// SPDX-License-Identifier: Apache-2.0
// Power spectra of real signals by a block of threads: of a compile-time length, or of any.
#pragma once
#include "audio/gpu_any_fft.h"
#include "audio/gpu_fixed_fft.h"

// The memory of this block of threads: shared, or `room` elements of scratch memory.
template <bool IS_SHARED>
DEVICE float2 *memory_of_block(const Launch &l, int64_t room) {
  DYNAMIC_SHARED(float2, shared);
  if (IS_SHARED) return shared;
  return (float2 *)l.scratch + (blockIdx.y * gridDim.x + blockIdx.x) * room;
}
