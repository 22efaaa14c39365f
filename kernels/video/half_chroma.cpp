// SPDX-License-Identifier: Apache-2.0
#include "video/half_chroma.h"

#include <algorithm>
#include <atomic>

#include "core/kernel.h"

namespace {

// Tests lower it to run the other loops: 0 colors.cpp's, 1 AVX2, 2 AVX-512.
std::atomic<int> highest_level{2};

int level() {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vbmi");
  static const int best = has_avx512 ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
  return std::min(best, highest_level.load(std::memory_order_relaxed));
#else
  return 0;
#endif
}

template <class Out>
void convert(const HalfChromaRow &row, [[maybe_unused]] const ycbcr::Coefficients &k, [[maybe_unused]] const Out &out) {
#if defined(__x86_64__)
  if (level() >= 2 && row.n >= 2 * kLeastHalfChroma) return half_chroma_avx512(row, k, out);
  if (level() >= 1) return half_chroma_avx2(row, k, out);
#endif
  fail("[internal error] no loop for %lld pixels", (long long)row.n);
}

}  // namespace

EXPORT void half_chroma_limit(int limit) { highest_level = limit; }
EXPORT_SHORT(half_chroma_limit)

bool has_half_chroma_loop() { return level() > 0; }
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out) { convert(row, k, out); }
void half_chroma_to_rgb(const HalfChromaRow &row, const ycbcr::Coefficients &k, const Planes &out) {
  convert(row, k, out);
}
