// SPDX-License-Identifier: Apache-2.0
// The inverse DCT for AVX2: a register holds one value of each of eight columns, as 32 bits. Two inputs lie side by
// side as 16 bits, so that a multiply-add is half a rotation.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "decode/idct.h"

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace {

constexpr int16_t fixed(double x) { return (int16_t)(x * 8192 + (x < 0 ? -0.5 : 0.5)); }

// For a pair of inputs: a * first + b * second.
constexpr int32_t pair(int16_t a, int16_t b) { return (int32_t)((uint16_t)a | (uint32_t)(uint16_t)b << 16); }
AVX2_INLINE __m256i weights(int16_t a, int16_t b) { return _mm256_set1_epi32(pair(a, b)); }

// The eight inputs of the transform in pairs, with the sums made in 16 bits.
struct Pairs {
  __m256i x26, x17, x35, s37_s15;
  __m256i sum04, difference04;  // in the upper half of 32 bits
};

constexpr int16_t k0541 = fixed(0.541196100), k0765 = fixed(0.765366865), k1847 = fixed(1.847759065),
                  k1175 = fixed(1.175875602), k0298 = fixed(0.298631336), k2053 = fixed(2.053119869),
                  k3072 = fixed(3.072711026), k1501 = fixed(1.501321110), k0899 = fixed(0.899976223),
                  k2562 = fixed(2.562915447), k1961 = fixed(1.961570560), k0390 = fixed(0.390180644);

// Results 0 to 7, shifted right with rounding.
template <int kShift>
AVX2_INLINE void transform(const Pairs &p, __m256i out[8]) {
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const __m256i e0 = _mm256_add_epi32(_mm256_srai_epi32(p.sum04, 3), half);
  const __m256i e1 = _mm256_add_epi32(_mm256_srai_epi32(p.difference04, 3), half);
  const __m256i e2 = _mm256_madd_epi16(p.x26, weights(k0541, k0541 - k1847));
  const __m256i e3 = _mm256_madd_epi16(p.x26, weights(k0541 + k0765, k0541));
  const __m256i a = _mm256_madd_epi16(p.s37_s15, weights(k1175 - k1961, k1175));
  const __m256i b = _mm256_madd_epi16(p.s37_s15, weights(k1175, k1175 - k0390));
  const __m256i odd[4] = {
      _mm256_add_epi32(_mm256_madd_epi16(p.x17, weights(k1501 - k0899, -k0899)), b),
      _mm256_add_epi32(_mm256_madd_epi16(p.x35, weights(k3072 - k2562, -k2562)), a),
      _mm256_add_epi32(_mm256_madd_epi16(p.x35, weights(-k2562, k2053 - k2562)), b),
      _mm256_add_epi32(_mm256_madd_epi16(p.x17, weights(-k0899, k0298 - k0899)), a),
  };
  const __m256i even[4] = {_mm256_add_epi32(e0, e3), _mm256_add_epi32(e1, e2), _mm256_sub_epi32(e1, e2),
                           _mm256_sub_epi32(e0, e3)};
  for (int i = 0; i < 4; i++) {
    out[i] = _mm256_srai_epi32(_mm256_add_epi32(even[i], odd[i]), kShift);
    out[7 - i] = _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd[i]), kShift);
  }
}

// A dequantised block. Each lane has four columns: an even row below an odd one.
struct Block {
  __m256i s01, s23, s45, s67;
};

AVX2_INLINE Block dequantise(const __m256i *rows, const uint16_t *quantisers) {
  const __m256i *q = (const __m256i *)quantisers;
  __m256i s[4];
  for (int i = 0; i < 4; i++)
    s[i] = _mm256_permute4x64_epi64(_mm256_mullo_epi16(_mm256_load_si256(rows + i), _mm256_loadu_si256(q + i)), 0xd8);
  return {s[0], s[1], s[2], s[3]};
}

AVX2_INLINE void clear(int16_t *block) {
  for (int i = 0; i < 4; i++) _mm256_store_si256((__m256i *)block + i, _mm256_setzero_si256());
}

// Whether all bits of x and of the upper half of `upper` are zero.
AVX2_INLINE bool all_zero(__m256i x, __m256i upper) {
  const __m128i any = _mm_or_si128(_mm256_castsi256_si128(x),
                                   _mm_or_si128(_mm256_extracti128_si256(x, 1), _mm256_extracti128_si256(upper, 1)));
  return _mm_testz_si128(any, any);
}

}  // namespace

AVX2 void inverse_dct_8x8_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  const __m256i *rows = (const __m256i *)block;
  const __m256i zero = _mm256_setzero_si256();
  const auto [s01, s23, s45, s67] = dequantise(rows, quantisers);
  const bool one_row = all_zero(_mm256_or_si256(_mm256_or_si256(rows[1], rows[2]), rows[3]), rows[0]);
  clear(block);

  // After the first pass, in lanes: column j next to column j + 4.
  __m256i c04, c15, c26, c37;
  if (one_row) {
    // Only the first row is not zero: all rows are equal. Here libjpeg does not saturate.
    const __m256i both = _mm256_slli_epi16(s01, 2);  // columns 0 to 3 in one lane, 4 to 7 in the other
    const __m256i word = _mm256_set1_epi16(0x0100);
    auto spread = [&](int j) __attribute__((target("avx2"), always_inline)) {
      return _mm256_shuffle_epi8(both, _mm256_add_epi16(word, _mm256_set1_epi16((int16_t)(j * 0x0202))));
    };
    c04 = spread(0), c15 = spread(1), c26 = spread(2), c37 = spread(3);
  } else {
    const __m256i sum = _mm256_add_epi16(s01, s45), s37 = _mm256_add_epi16(s23, s67);
    const Pairs p = {_mm256_unpacklo_epi16(s23, s67),  _mm256_unpackhi_epi16(s01, s67),
                     _mm256_unpackhi_epi16(s23, s45),  _mm256_unpackhi_epi16(s37, sum),
                     _mm256_unpacklo_epi16(zero, sum), _mm256_unpacklo_epi16(zero, _mm256_sub_epi16(s01, s45))};
    __m256i o[8];
    transform<11>(p, o);
    // Rows of four columns per lane; transposed within the lanes.
    const __m256i t02 = _mm256_packs_epi32(o[0], o[2]), t13 = _mm256_packs_epi32(o[1], o[3]);
    const __m256i t46 = _mm256_packs_epi32(o[4], o[6]), t57 = _mm256_packs_epi32(o[5], o[7]);
    const __m256i a01 = _mm256_unpacklo_epi16(t02, t13), a23 = _mm256_unpackhi_epi16(t02, t13);
    const __m256i a45 = _mm256_unpacklo_epi16(t46, t57), a67 = _mm256_unpackhi_epi16(t46, t57);
    const __m256i b03 = _mm256_unpacklo_epi32(a01, a23), b03h = _mm256_unpackhi_epi32(a01, a23);
    const __m256i b47 = _mm256_unpacklo_epi32(a45, a67), b47h = _mm256_unpackhi_epi32(a45, a67);
    c04 = _mm256_unpacklo_epi64(b03, b47), c15 = _mm256_unpackhi_epi64(b03, b47);
    c26 = _mm256_unpacklo_epi64(b03h, b47h), c37 = _mm256_unpackhi_epi64(b03h, b47h);
  }
  // Each lane gets four rows: of column j, then of column j + 4.
  c04 = _mm256_permute4x64_epi64(c04, 0xd8), c15 = _mm256_permute4x64_epi64(c15, 0xd8);
  c26 = _mm256_permute4x64_epi64(c26, 0xd8), c37 = _mm256_permute4x64_epi64(c37, 0xd8);
  const __m256i c40 = _mm256_shuffle_epi32(c04, 0x4e), c51 = _mm256_shuffle_epi32(c15, 0x4e);
  const __m256i c62 = _mm256_shuffle_epi32(c26, 0x4e), c73 = _mm256_shuffle_epi32(c37, 0x4e);
  const Pairs p = {_mm256_unpacklo_epi16(c26, c62),
                   _mm256_unpacklo_epi16(c15, c73),
                   _mm256_unpacklo_epi16(c37, c51),
                   _mm256_unpacklo_epi16(_mm256_add_epi16(c37, c73), _mm256_add_epi16(c15, c51)),
                   _mm256_unpacklo_epi16(zero, _mm256_add_epi16(c04, c40)),
                   _mm256_unpacklo_epi16(zero, _mm256_sub_epi16(c04, c40))};
  __m256i o[8];
  transform<18>(p, o);
  // Four rows per lane; four columns of them as bytes, transposed.
  const __m256i turn = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m256i middle = _mm256_set1_epi8((char)0x80);
  auto bytes = [&](int i) __attribute__((target("avx2"), always_inline)) {
    const __m256i x = _mm256_packs_epi16(_mm256_packs_epi32(o[i], o[i + 1]), _mm256_packs_epi32(o[i + 2], o[i + 3]));
    return _mm256_shuffle_epi8(_mm256_xor_si256(x, middle), turn);
  };
  const __m256i left = bytes(0), right = bytes(4);
  const __m256i r0145 = _mm256_unpacklo_epi32(left, right), r2367 = _mm256_unpackhi_epi32(left, right);
  auto store = [&](int y, __m128i two) __attribute__((target("avx2"), always_inline)) {
    _mm_storel_epi64((__m128i *)(out + y * stride), two);
    _mm_storeh_pd((double *)(out + (y + 1) * stride), _mm_castsi128_pd(two));
  };
  store(0, _mm256_castsi256_si128(r0145));
  store(2, _mm256_castsi256_si128(r2367));
  store(4, _mm256_extracti128_si256(r0145, 1));
  store(6, _mm256_extracti128_si256(r2367, 1));
}

namespace {

// The halves of a block's transform (see idct.cpp), of eight columns or four rows.
constexpr int32_t kEven = pair(fixed(1.847759065), -fixed(0.765366865)),
                  kInner17 = pair(fixed(1.061594337), -fixed(0.211164243)),
                  kInner35 = pair(-fixed(2.172734803), fixed(1.451774981)),
                  kOuter17 = pair(fixed(2.562915447), -fixed(0.509795579)),
                  kOuter35 = pair(fixed(0.899976223), -fixed(0.601344887)),
                  kQuarter17 = pair(fixed(3.624509785), -fixed(0.720959822)),
                  kQuarter35 = pair(-fixed(1.272758580), fixed(0.850430095));

}  // namespace

AVX2 void inverse_dct_4x4_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  const __m256i *rows = (const __m256i *)block;
  const auto [s01, s23, s45, s67] = dequantise(rows, quantisers);
  // The fifth row does not contribute.
  const __m256i row5 = _mm256_permute2x128_si256(rows[2], rows[2], 0x81);
  const bool one_row = all_zero(_mm256_or_si256(_mm256_or_si256(rows[1], row5), rows[3]), rows[0]);
  clear(block);
  __m256i p, q;  // four columns of rows 0 and 1, 2 and 3 in each lane
  if (one_row) {
    p = q = _mm256_slli_epi16(_mm256_unpacklo_epi64(s01, s01), 2);
  } else {
    const __m256i x17 = _mm256_unpackhi_epi16(s01, s67), x35 = _mm256_unpackhi_epi16(s23, s45);
    const __m256i first = _mm256_add_epi32(_mm256_srai_epi32(_mm256_unpacklo_epi16(_mm256_setzero_si256(), s01), 2),
                                           _mm256_set1_epi32(1 << 11));
    const __m256i e = _mm256_madd_epi16(_mm256_unpacklo_epi16(s23, s67), _mm256_set1_epi32(kEven));
    const __m256i outer = _mm256_add_epi32(_mm256_madd_epi16(x17, _mm256_set1_epi32(kOuter17)),
                                           _mm256_madd_epi16(x35, _mm256_set1_epi32(kOuter35)));
    const __m256i inner = _mm256_add_epi32(_mm256_madd_epi16(x17, _mm256_set1_epi32(kInner17)),
                                           _mm256_madd_epi16(x35, _mm256_set1_epi32(kInner35)));
    const __m256i plus = _mm256_add_epi32(first, e), minus = _mm256_sub_epi32(first, e);
    p = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(plus, outer), 12),
                           _mm256_srai_epi32(_mm256_add_epi32(minus, inner), 12));
    q = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_sub_epi32(minus, inner), 12),
                           _mm256_srai_epi32(_mm256_sub_epi32(plus, outer), 12));
  }
  // Transposed: columns of four rows.
  const __m256i even = _mm256_unpacklo_epi16(p, q), odd = _mm256_unpackhi_epi16(p, q);
  const __m256i c0145 = _mm256_unpacklo_epi16(even, odd), c2367 = _mm256_unpackhi_epi16(even, odd);
  const __m128i c01 = _mm256_castsi256_si128(c0145), c45 = _mm256_extracti128_si256(c0145, 1);
  const __m128i c23 = _mm256_castsi256_si128(c2367), c67 = _mm256_extracti128_si256(c2367, 1);
  const __m128i x17 = _mm_unpackhi_epi16(c01, c67), x35 = _mm_unpackhi_epi16(c23, c45);
  const __m128i first =
      _mm_add_epi32(_mm_srai_epi32(_mm_unpacklo_epi16(_mm_setzero_si128(), c01), 2), _mm_set1_epi32(1 << 18));
  const __m128i e = _mm_madd_epi16(_mm_unpacklo_epi16(c23, c67), _mm_set1_epi32(kEven));
  const __m128i outer =
      _mm_add_epi32(_mm_madd_epi16(x17, _mm_set1_epi32(kOuter17)), _mm_madd_epi16(x35, _mm_set1_epi32(kOuter35)));
  const __m128i inner =
      _mm_add_epi32(_mm_madd_epi16(x17, _mm_set1_epi32(kInner17)), _mm_madd_epi16(x35, _mm_set1_epi32(kInner35)));
  const __m128i plus = _mm_add_epi32(first, e), minus = _mm_sub_epi32(first, e);
  const __m128i left =
      _mm_packs_epi32(_mm_srai_epi32(_mm_add_epi32(plus, outer), 19), _mm_srai_epi32(_mm_add_epi32(minus, inner), 19));
  const __m128i right =
      _mm_packs_epi32(_mm_srai_epi32(_mm_sub_epi32(minus, inner), 19), _mm_srai_epi32(_mm_sub_epi32(plus, outer), 19));
  const __m128i turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m128i samples =
      _mm_shuffle_epi8(_mm_xor_si128(_mm_packs_epi16(left, right), _mm_set1_epi8((char)0x80)), turn);
  const int32_t lines[4] = {_mm_cvtsi128_si32(samples), _mm_extract_epi32(samples, 1), _mm_extract_epi32(samples, 2),
                            _mm_extract_epi32(samples, 3)};
  for (int y = 0; y < 4; y++) memcpy(out + y * stride, &lines[y], 4);
}

AVX2 void inverse_dct_2x2_avx2(int16_t *block, const uint16_t *quantisers, uint8_t *out, int64_t stride) {
  const auto [s01, s23, s45, s67] = dequantise((const __m256i *)block, quantisers);
  clear(block);
  const __m256i odd =
      _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(s01, s67), _mm256_set1_epi32(kQuarter17)),
                       _mm256_madd_epi16(_mm256_unpackhi_epi16(s23, s45), _mm256_set1_epi32(kQuarter35)));
  const __m256i first = _mm256_add_epi32(_mm256_srai_epi32(_mm256_unpacklo_epi16(_mm256_setzero_si256(), s01), 1),
                                         _mm256_set1_epi32(1 << 12));
  const __m256i rows[2] = {_mm256_srai_epi32(_mm256_add_epi32(first, odd), 13),
                           _mm256_srai_epi32(_mm256_sub_epi32(first, odd), 13)};
  alignas(32) int16_t c[16];  // four columns of both rows in each lane
  _mm256_store_si256((__m256i *)c, _mm256_packs_epi32(rows[0], rows[1]));
  for (int y = 0; y < 2; y++) {
    const int16_t *low = c + 4 * y, *high = low + 8;
    // The first column keeps its width.
    const uint32_t sum = (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(rows[y])) << 15;
    const uint32_t rest = (uint32_t)(low[1] * fixed(3.624509785)) + (uint32_t)(high[3] * -fixed(0.720959822)) +
                          (uint32_t)(low[3] * -fixed(1.272758580)) + (uint32_t)(high[1] * fixed(0.850430095));
    const int32_t both[2] = {(int32_t)(sum + rest + (1u << 19)) >> 20, (int32_t)(sum - rest + (1u << 19)) >> 20};
    for (int x = 0; x < 2; x++) {
      const int sample = both[x] + 128;
      out[y * stride + x] = (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
    }
  }
}
#endif
