// SPDX-License-Identifier: Apache-2.0
// Regions of samples, for rules of operators.
#include "core/kernel.h"
#include "core/program.h"

// Regions that begin at `origin` and have the size `window` (n, k): their starts, then their ends, as `region`
// (2, n, k). `size` (n, k) receives what each is resized to: `wanted` (k), or nothing where a region is empty.
EXPORT void region_sizes(const int64_t *origin, const int64_t *window, int64_t n, int32_t k, const int64_t *wanted,
                         int64_t *size, double *region) {
  for (int64_t i = 0; i < n; i++) {
    bool empty = false;
    for (int32_t d = 0; d < k; d++) empty |= window[i * k + d] <= 0;
    for (int32_t d = 0; d < k; d++) {
      const int64_t at = i * k + d;
      region[at] = (double)origin[at], region[n * k + at] = (double)(origin[at] + window[at]);
      size[at] = empty ? 0 : wanted[d];
    }
  }
}
EXPORT_SHORT(region_sizes)
EXPORT_INSTRUCTION(region_sizes)
