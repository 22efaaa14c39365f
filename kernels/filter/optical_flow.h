// SPDX-License-Identifier: Apache-2.0
// Input and output of the GPU's optical flow engine, and their conversion: see penstock/gpu/optical_flow.py.
#pragma once
#include "core/tensor.h"

// Addresses of a dense picture and of the engine's surface. `pitch`: bytes per row of the surface. height and width
// count pixels or vectors. Frames have 1 or 3 channels; `reversed`: BGR.
struct OpticalFlowArgs {
  int64_t dense, surface, pitch;
  int32_t height, width, channels, reversed;
};

// Vectors are fixed-point numbers with 5 fractional bits.
constexpr float kFlowUnit = 1.0f / 32;
