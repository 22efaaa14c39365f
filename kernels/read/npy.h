// SPDX-License-Identifier: Apache-2.0
// An array in a .npy file, or a window of it, of which only the rows that are needed are read.
#pragma once
#include "core/tensor.h"

struct NpyArgs {
  int32_t has_window;  // else the part is the whole file; with a window only its beginning
  int32_t start_is;    // what `start` holds: 0 nothing, 1 elements, 2 shares of the extent
  int32_t end_is;      // what `end` holds: 0 nothing, 1 where it ends, 2 the same relative, 3 a shape, 4 relative
  int32_t n_axes;      // 0: all axes, as many as there are values
  int32_t n_values;
  int32_t outside;  // what lies outside of the array: 0 an error, 1 is padded, 2 is left out
  float fill_value;
  int32_t axes[8];                 // negative ones count from the last
  float start[8], end[8];          // relative
  int32_t start_at[8], end_at[8];  // in elements
};
