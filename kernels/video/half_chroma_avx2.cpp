// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#include "color/interleave.h"

#define VECTOR __attribute__((target("avx2"), always_inline)) inline

namespace {

struct V {
  typedef __m256i Bytes;
  static constexpr int64_t kBytes = 32;

  VECTOR static Bytes words(int x) { return _mm256_set1_epi16((int16_t)x); }
  VECTOR static Bytes load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
  VECTOR static void store(void *p, Bytes x) { _mm256_storeu_si256((__m256i *)p, x); }
  // Half of kBytes of each: a b a b ...
  VECTOR static Bytes pairs(const uint8_t *a, const uint8_t *b) {
    return _mm256_unpacklo_epi8(to_lanes(a), to_lanes(b));
  }
  VECTOR static Bytes flip(Bytes x, Bytes bits) { return _mm256_xor_si256(x, bits); }
  VECTOR static Bytes sums_of_products(Bytes x, Bytes weights) { return _mm256_maddubs_epi16(x, weights); }
  VECTOR static Bytes times(Bytes x, Bytes y) { return _mm256_mulhrs_epi16(x, y); }
  VECTOR static Bytes sum(Bytes x, Bytes y) { return _mm256_add_epi16(x, y); }
  // Each lane: its bytes of even pixels, then those of odd ones.
  VECTOR static Bytes pack(Bytes even, Bytes odd) { return _mm256_packus_epi16(even, odd); }
  VECTOR static Bytes in_order(Bytes packed) {
    const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm256_shuffle_epi8(packed, _mm256_broadcastsi128_si256(order));
  }
  VECTOR static void store_interleaved(Bytes r, Bytes g, Bytes b, uint8_t *out) {
    ::store_interleaved<1>(in_order(r), in_order(g), in_order(b), out);
  }

 private:
  VECTOR static Bytes to_lanes(const uint8_t *p) {  // eight bytes to the lower half of each lane
    return _mm256_permute4x64_epi64(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)), 0x10);
  }
};

}  // namespace

#include "video/half_chroma_loop.h"

__attribute__((target("avx2"))) void half_chroma_avx2(const HalfChromaRow &row, const ycbcr::Coefficients &k,
                                                      uint8_t *out) {
  to_rgb(row, k, out);
}
__attribute__((target("avx2"))) void half_chroma_avx2(const HalfChromaRow &row, const ycbcr::Coefficients &k,
                                                      const Planes &out) {
  to_rgb(row, k, out);
}
#endif
