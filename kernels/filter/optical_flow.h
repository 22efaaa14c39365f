// SPDX-License-Identifier: Apache-2.0
// What the GPU's optical flow engine reads and writes, and how it is converted: see penstock/gpu/optical_flow.py.
#pragma once
#include "core/tensor.h"

// Addresses of a dense picture and of the engine's surface, whose rows are `pitch` bytes apart. height and width count
// pixels, or vectors. Frames are of 1 or 3 channels, the first of which is blue if they are `reversed`.
struct OpticalFlowArgs {
  int64_t dense, surface, pitch;
  int32_t height, width, channels, reversed;
};

// Numbers of vectors have 5 binary places.
constexpr float kFlowUnit = 1.0f / 32;
