// SPDX-License-Identifier: Apache-2.0
// Random orders of the samples of a batch, from one random word per sample.
#include <algorithm>
#include <numeric>

#include "core/kernel.h"
#include "core/philox.h"

// out (n): a permutation (Fisher, Yates 1938) or, if `repeats`, independent indices. If `moves`, no sample keeps its
// own index: the permutation is a single cycle (Sattolo, 1986). An index below k is the upper half of word * k: Lemire,
// Fast Random Integer Generation in an Interval (2019), without the rejection, which would change a probability by at
// most 2^-32 * k.
EXPORT void batch_permutation(uint64_t key, const uint32_t *epoch, const uint64_t *position, int64_t n, int32_t repeats,
                              int32_t moves, int32_t *out) {
  const Philox p{{(uint32_t)key, (uint32_t)(key >> 32)}};
  const auto word = [&](int64_t i) {
    uint32_t words[4] = {0, (uint32_t)position[i], (uint32_t)(position[i] >> 32), epoch[i]};
    p.block(words);
    return (uint64_t)words[0];
  };
  moves = moves && n > 1;
  if (repeats) {
    for (int64_t i = 0; i < n; i++) {
      const int32_t x = (int32_t)(word(i) * (uint64_t)(n - moves) >> 32);
      out[i] = x + (moves && x >= i);
    }
    return;
  }
  std::iota(out, out + n, 0);
  // From the end: each is swapped with one before it or, unless `moves`, possibly with itself.
  for (int64_t i = n - 1; i > 0; i--) std::swap(out[i], out[word(i) * (uint64_t)(i + !moves) >> 32]);
}
EXPORT_SHORT(batch_permutation)
