// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the shapes of a batch.
#include "core/kernel.h"

// Fills the rows of n samples of the extents `stored` (n, ndim), where `data` is the place in one block of memory:
// packed if they have one shape, else each 64-byte aligned, with `guard` bytes left free behind each. `about` receives
// the bytes of the block, and 1 if all have one shape, else 0. False if there can't be so much memory.
EXPORT int32_t lay_out_batch(const int64_t *stored, int64_t n, int32_t ndim, int32_t dtype, int64_t guard, Tensor *rows,
                             int64_t *about) {
  bool dense = true;
  for (int64_t i = ndim; i < n * ndim && dense; i++) dense = stored[i] == stored[i - ndim];
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) {
    Tensor &t = rows[i] = Tensor{};
    t.data = (void *)total;
    t.ndim = ndim, t.dtype = dtype;
    int64_t bytes = item_size(dtype);
    bool too_large = false;
    for (int d = 0; d < ndim; d++) {
      t.shape[d] = stored[i * ndim + d];
      too_large |= __builtin_mul_overflow(bytes, t.shape[d], &bytes);
    }
    if (!dense || guard) too_large |= __builtin_add_overflow(bytes, guard + 63, &bytes), bytes &= ~63ll;
    if (too_large || __builtin_add_overflow(total, bytes, &total)) return 0;
  }
  about[0] = total, about[1] = dense;
  return 1;
}

// Windows (n, ndim) of samples of these shapes: makes them whole along the axes whose bits are set in `whole`. False if
// one reaches out of its sample.
EXPORT int32_t settle_windows(int64_t *origin, int64_t *size, const int64_t *shape, int64_t n, int32_t ndim,
                              uint32_t whole) {
  for (int64_t i = 0; i < n * ndim; i++) {
    if (whole >> i % ndim & 1) origin[i] = 0, size[i] = shape[i];
    if (origin[i] < 0 || size[i] < 0 || origin[i] > shape[i] - size[i]) return 0;
  }
  return 1;
}
