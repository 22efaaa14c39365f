// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

// GCC 12 warns about its own headers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define AVX512 target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")
#define VECTOR __attribute__((AVX512, always_inline)) inline

namespace {

// Which packed byte each of three times 64 interleaved bytes is.
struct Interleaving {
  alignas(64) uint8_t from[3][64];  // of red, and of green behind it; of blue where `blue` is set
  uint64_t blue[3];
  constexpr Interleaving() : from(), blue() {
    for (int i = 0; i < 192; i++) {
      const int pixel = i / 3, channel = i % 3, packed = pixel / 16 * 16 + pixel % 2 * 8 + pixel % 16 / 2;
      from[i / 64][i % 64] = (uint8_t)(channel == 1 ? 64 + packed : packed);
      if (channel == 2) blue[i / 64] |= 1ull << i % 64;
    }
  }
};
constexpr Interleaving kInterleaving;

struct V {
  typedef __m512i Bytes;
  static constexpr int64_t kBytes = 64;

  VECTOR static Bytes words(int x) { return _mm512_set1_epi16((int16_t)x); }
  VECTOR static Bytes load(const void *p) { return _mm512_loadu_si512(p); }
  VECTOR static void store(void *p, Bytes x) { _mm512_storeu_si512(p, x); }
  // Half of kBytes of each: a b a b ...
  VECTOR static Bytes pairs(const uint8_t *a, const uint8_t *b) {
    return _mm512_unpacklo_epi8(to_lanes(a), to_lanes(b));
  }
  VECTOR static Bytes flip(Bytes x, Bytes bits) { return _mm512_xor_si512(x, bits); }
  VECTOR static Bytes sums_of_products(Bytes x, Bytes weights) { return _mm512_maddubs_epi16(x, weights); }
  VECTOR static Bytes times(Bytes x, Bytes y) { return _mm512_mulhrs_epi16(x, y); }
  VECTOR static Bytes sum(Bytes x, Bytes y) { return _mm512_add_epi16(x, y); }
  // Each lane: its bytes of even pixels, then those of odd ones.
  VECTOR static Bytes pack(Bytes even, Bytes odd) { return _mm512_packus_epi16(even, odd); }
  VECTOR static Bytes in_order(Bytes packed) {
    const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm512_shuffle_epi8(packed, _mm512_broadcast_i32x4(order));
  }
  VECTOR static void store_interleaved(Bytes r, Bytes g, Bytes b, uint8_t *out) {
    for (int i = 0; i < 3; i++) {
      const Bytes from = _mm512_load_si512(kInterleaving.from[i]), two = _mm512_permutex2var_epi8(r, from, g);
      store(out + 64 * i, _mm512_mask_permutexvar_epi8(two, kInterleaving.blue[i], from, b));
    }
  }

 private:
  VECTOR static Bytes to_lanes(const uint8_t *p) {  // eight bytes to the lower half of each lane
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0),
                                    _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)));
  }
};

}  // namespace

#include "video/half_chroma_loop.h"

__attribute__((AVX512)) void half_chroma_avx512(const HalfChromaRow &row, const ycbcr::Coefficients &k, uint8_t *out) {
  to_rgb(row, k, out);
}
__attribute__((AVX512)) void half_chroma_avx512(const HalfChromaRow &row, const ycbcr::Coefficients &k,
                                                const Planes &out) {
  to_rgb(row, k, out);
}
#endif
