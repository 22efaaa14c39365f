// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_level.h"

#include "core/kernel.h"

static int highest_level = VECTOR_LOOPS;

// For tests: sets the highest level to use.
EXPORT void jpeg_limit(int level) { highest_level = level; }
EXPORT_SHORT(jpeg_limit)

JpegLevel jpeg_level() {
#if defined(__x86_64__)
  static const int best = __builtin_cpu_supports("avx2") ? VECTOR_LOOPS : PLAIN_LOOPS;
#elif defined(__aarch64__)
  constexpr int best = VECTOR_LOOPS;
#else
  constexpr int best = PLAIN_LOOPS;
#endif
  return (JpegLevel)(highest_level < best ? highest_level : best);
}
