// SPDX-License-Identifier: Apache-2.0
#include "color/interleave.h"

#include <algorithm>

#include "core/kernel.h"

namespace {

template <class T>
void plain(const T *__restrict a, const T *__restrict b, const T *__restrict c, int64_t n, T *__restrict out) {
  for (int64_t i = 0; i < n; i++) out[3 * i] = a[i], out[3 * i + 1] = b[i], out[3 * i + 2] = c[i];
}

#if defined(__x86_64__)
// Requires at least 32 bytes of each plane; the last step overlaps the one before.
template <class T>
__attribute__((target("avx2"))) void avx2(const T *a, const T *b, const T *c, int64_t n, T *out) {
  constexpr int64_t kStep = 32 / (int64_t)sizeof(T);
  for (int64_t i = 0;; i = std::min(i + kStep, n - kStep)) {
    store_interleaved<sizeof(T)>(_mm256_loadu_si256((const __m256i *)(a + i)),
                                 _mm256_loadu_si256((const __m256i *)(b + i)),
                                 _mm256_loadu_si256((const __m256i *)(c + i)), out + 3 * i);
    if (i == n - kStep) return;
  }
}
#endif

template <class T>
void choose(const T *a, const T *b, const T *c, int64_t n, T *out) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2 && n * (int64_t)sizeof(T) >= 32) return avx2(a, b, c, n, out);
#endif
  plain(a, b, c, n, out);
}

}  // namespace

void interleave(const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n, uint8_t *out) {
  choose(a, b, c, n, out);
}
void interleave(const uint16_t *a, const uint16_t *b, const uint16_t *c, int64_t n, uint16_t *out) {
  choose(a, b, c, n, out);
}
