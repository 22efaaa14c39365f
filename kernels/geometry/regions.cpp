// SPDX-License-Identifier: Apache-2.0
// Regions of samples, for operator rules.
#include "core/kernel.h"
#include "core/program.h"

// Writes windows that begin at `origin` and have the size `window` (n, k) to `region` (2, n, k): starts, then ends.
// `size` (n, k): target size of each region: `wanted` (k), or 0 if the region is empty.
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
