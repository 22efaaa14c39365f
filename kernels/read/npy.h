// SPDX-License-Identifier: Apache-2.0
// An array in a .npy file, or a window of it, of which only the rows that are needed are read.
#pragma once
#include "core/tensor.h"

struct NpyArgs {
  int32_t has_window;  // else the part is the whole file; with a window only its beginning
  int32_t n_rows;      // of values: 1 for all samples, or one for each of the batch
  int32_t start_is;    // what `start` holds: 0 nothing, 1 elements, 2 shares of the extent
  int32_t end_is;      // what `end` holds: 0 nothing, 1 where it ends, 2 the same relative, 3 a shape, 4 relative
  int32_t n_axes;      // 0: all axes, as many as there are values
  int32_t outside;     // what lies outside of the array: 0 an error, 1 is padded, 2 is left out
  float fill_value;
  int32_t stays;    // what is in the file as it comes out is not read: output 1 says where it begins, or -1
  int32_t axes[8];  // negative ones count from the last
  const int32_t *start_count, *end_count;  // (n_rows) how many values there are; 1 is for all axes, 0: not given
  const float *start, *end;                // (n_rows, 8), relative
  const int32_t *start_at, *end_at;        // (n_rows, 8), in elements
};
