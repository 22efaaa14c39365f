// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include "core/kernel.h"

// Words first .. first + k of the sequence of each sample. The counter is (block, position low, position high ^ stream,
// epoch): a stream has its own high bits, so sequences of up to 2^34 words never overlap.
EXPORT void philox(uint64_t key, const uint32_t *epoch, const uint64_t *position, int64_t n, uint32_t stream,
                   int64_t first, int64_t k, uint32_t *out) {
  Philox p{{(uint32_t)key, (uint32_t)(key >> 32)}};
  for (int64_t i = 0; i < n; i++) {
    uint32_t words[4];
    int64_t have = -1;
    for (int64_t j = 0; j < k; j++) {
      int64_t word = first + j;
      if (word / 4 != have) {
        have = word / 4;
        words[0] = (uint32_t)have;
        words[1] = (uint32_t)position[i];
        words[2] = (uint32_t)(position[i] >> 32) ^ stream << 16;
        words[3] = epoch[i];
        p.block(words);
      }
      out[i * k + j] = words[word % 4];
    }
  }
}
EXPORT_SHORT(philox)
