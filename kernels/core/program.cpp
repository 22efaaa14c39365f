// SPDX-License-Identifier: Apache-2.0
// Runs column programs, and functions that they call.
#include "core/program.h"

#include <cstring>

#include "core/native_time.h"

// Runs n instructions, up to the first with an unexpected result; returns its index. If all results are as expected,
// returns n, or n + 1 if shapes have changed. `changed`: whether the memory is not that of a whole run, so that all
// instructions must run.
EXPORT int32_t run_program(const Instruction *instructions, int32_t n, int32_t changed) {
  NativeTime time;
  for (int32_t i = 0; i < n; i++) {
    const Instruction &x = instructions[i];
    if (x.when == kIfShapesChanged && !changed) continue;
    const int64_t result = x.function(x.arguments);
    if (x.when == kInput)
      changed |= result != 0;
    else if (result != x.result)
      return i;
  }
  return n + (changed != 0);
}
EXPORT_LONG(run_program)

// Whether a column of `bytes` bytes has the expected content.
EXPORT int32_t same_column(const char *column, int64_t bytes, const char *expected) {
  return !std::memcmp(column, expected, bytes);
}
EXPORT_SHORT(same_column)
EXPORT_INSTRUCTION(same_column)

// Copies the rows of n samples that `*from` refers to, and their extents to `shape` (n, ndim); returns whether an
// extent has changed.
EXPORT int32_t take_in(const Tensor *const *from, int64_t n, int32_t ndim, Tensor *rows, int64_t *shape) {
  int64_t changes = 0;
  for (int64_t i = 0; i < n; i++) {
    rows[i] = (*from)[i];
    for (int32_t d = 0; d < ndim; d++, shape++) changes |= *shape ^ rows[i].shape[d], *shape = rows[i].shape[d];
  }
  return changes != 0;
}
EXPORT_SHORT(take_in)
EXPORT_INSTRUCTION(take_in)

// Whether each of n samples of the extents (n, ndim) has fewer elements than `limit`.
EXPORT int32_t volumes_below(const int64_t *extents, int64_t n, int32_t ndim, int64_t limit) {
  for (int64_t i = 0; i < n; i++) {
    int64_t volume = 1;
    for (int32_t d = 0; d < ndim; d++)
      if (__builtin_mul_overflow(volume, extents[i * ndim + d], &volume)) return 0;
    if (volume >= limit) return 0;
  }
  return 1;
}
EXPORT_SHORT(volumes_below)
EXPORT_INSTRUCTION(volumes_below)

// Rows of `width` numbers: row k of `out` is row rows[k] of n. Returns false if there is no such row.
EXPORT int32_t take_rows(const int64_t *x, int64_t n, int64_t width, const int64_t *rows, int64_t count, int64_t *out) {
  for (int64_t k = 0; k < count; k++) {
    if (rows[k] < 0 || rows[k] >= n) return 0;
    std::memcpy(out + k * width, x + rows[k] * width, 8 * width);
  }
  return 1;
}
EXPORT_SHORT(take_rows)
EXPORT_INSTRUCTION(take_rows)
