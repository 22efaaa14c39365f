// SPDX-License-Identifier: Apache-2.0
// An array in a .npy file, or a window of it; only the needed rows are read.
#pragma once
#include "core/tensor.h"

struct NpyArgs {
  int32_t has_window;  // else the part is the whole file; with a window only its beginning
  int32_t n_rows;      // of values: 1 for all samples, or one per sample of the batch
  int32_t start_is;    // meaning of `start`: 0 unused, 1 elements, 2 fractions of the extent
  int32_t end_is;      // meaning of `end`: 0 unused, 1 end, 2 relative end, 3 shape, 4 relative shape
  int32_t n_axes;      // 0: all axes, or as many as there are values
  int32_t outside;     // outside of the array: 0 is an error, 1 is padded, 2 is cut off
  float fill_value;
  int32_t stays;                           // don't read data stored in output form: output 1 is its offset, or -1
  int32_t axes[8];                         // negative ones count from the end
  const int32_t *start_count, *end_count;  // (n_rows) number of values; 1 applies to all axes, 0 if not given
  const float *start, *end;                // (n_rows, 8), relative
  const int32_t *start_at, *end_at;        // (n_rows, 8), in elements
};
