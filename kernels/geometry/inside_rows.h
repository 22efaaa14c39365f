// SPDX-License-Identifier: Apache-2.0
// Loops for runs of a row whose neighbours are all inside of the input: no tests are needed.
#pragma once
#ifdef __x86_64__
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "geometry/source.h"

namespace {

// Linear interpolation; all neighbours are inside.
template <class Out, int kDims, class In>
CLONES void linear_inside(Out *__restrict out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
  const int channels = s.channels;
  constexpr int kTaps = 1 << kDims;
  int64_t neighbour[kTaps];
  for (int t = 0; t < kTaps; t++) {
    neighbour[t] = 0;
    for (int d = 0; d < kDims; d++) neighbour[t] += (t >> d & 1) * s.step[d];
  }
  for (int64_t x = begin; x < end; x++) {
    const In *p = s.data;
    for (int d = 0; d < kDims; d++) p += s.index[d][x] * s.step[d];
    for (int c = 0; c < channels; c++) {
      float v[kTaps];
      for (int t = 0; t < kTaps; t++) v[t] = (float)p[neighbour[t] + c];
      for (int t = 0; t < kTaps / 2; t++) v[t] = warp_mix_x(v[2 * t], v[2 * t + 1], s.weight[0][x]);
      for (int d = 1; d < kDims; d++)
        for (int t = 0; t < kTaps >> (d + 1); t++) v[t] = warp_mix(v[2 * t], v[2 * t + 1], s.weight[d][x]);
      out[x * channels + c] = saturate<Out>(v[0]);
    }
  }
}

#if defined(__x86_64__) || defined(__aarch64__)
// Images with pixels of three bytes: eight bytes per pixel and row are read, except where the image ends before.
inline const uint8_t *end_of(const Source<2, uint8_t> &s) { return s.data + s.step[1] * s.extent[1]; }

// Addresses of the pixels of a row. Holds copies, which byte stores cannot alias.
struct Places {
  const uint8_t *data;
  const int32_t *across, *down;
  int64_t row;
  explicit Places(const Source<2, uint8_t> &s) : data(s.data), across(s.index[0]), down(s.index[1]), row(s.step[1]) {}
  const uint8_t *operator[](int64_t x) const { return data + down[x] * row + (int64_t)across[x] * 3; }
};

// Offsets of n pixels of three bytes in an image of less than 2^31 bytes. Returns the largest.
CLONES int32_t offsets_of(int32_t *__restrict offset, const int32_t *__restrict across, const int32_t *__restrict down,
                          int32_t n, int32_t row) {
  int32_t most = 0;
  for (int32_t i = 0; i < n; i++) {
    const int32_t at = down[i] * row + across[i] * 3;
    most = at > most ? at : most;
    offset[i] = at;
  }
  return most;
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline
#define FOURS AVX2_INLINE
#else
#define FOURS __attribute__((always_inline)) inline
#endif

// As linear_inside, for images of less than 2^31 bytes. four(x, at) makes four pixels from x on, at the byte offsets
// at[0] to at[3]. linear_inside makes pixels whose eight bytes exceed the image.
template <class Out, class Four>
FOURS void in_fours(Out *__restrict out, const Source<2, uint8_t> &s, int64_t begin, int64_t end, const Four &four) {
  constexpr int64_t kBlock = 128;
  const int64_t down = s.step[1], last = down * (s.extent[1] - 1) - 8;
  int32_t offset[kBlock];
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t n = end - block < kBlock ? end - block : kBlock;
    const bool all = offsets_of(offset, s.index[0] + block, s.index[1] + block, (int32_t)n, (int32_t)down) <= last;
    for (int64_t i = 0; i < n; i += 4) {
      const int64_t x = block + i;
      const int32_t *const at = offset + i;
      if (n - i < 4 || (!all && (at[0] > last || at[1] > last || at[2] > last || at[3] > last)))
        linear_inside(out, s, x, n - i < 4 ? block + n : x + 4);
      else
        four(x, at);
    }
  }
}
#undef FOURS
#endif

#ifdef __x86_64__
// As warp_mix_x and warp_mix.
AVX2_INLINE __m256 mix_x(__m256 a, __m256 b, __m256 q) {
  return _mm256_add_ps(_mm256_mul_ps(a, _mm256_sub_ps(_mm256_set1_ps(1), q)), _mm256_mul_ps(b, q));
}

AVX2_INLINE __m256 mix(__m256 a, __m256 b, __m256 q) { return _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), q)); }

// Eight bytes of a row and of the row below.
AVX2_INLINE __m128i two_rows_of(const uint8_t *p, int64_t down) {
  return _mm_castpd_si128(
      _mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64((const __m128i *)p)), (const double *)(p + down)));
}

// Shuffles three bytes of each half of a vector to the low bytes of integers.
#define THREE(at) at, -1, -1, -1, at + 1, -1, -1, -1, at + 2, -1, -1, -1, -1, -1, -1, -1
#define OF_BOTH_HALVES(at) _mm256_setr_epi8(THREE(at), THREE(at))

// Two pixels of three channels, each followed by an unused value.
AVX2_INLINE __m256 two_linear(const uint8_t *p, const uint8_t *q, int64_t down, __m256 across, __m256 along) {
  const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(two_rows_of(p, down)), two_rows_of(q, down), 1);
  auto neighbour = [&](__m256i order) __attribute__((target("avx2"), always_inline)) {
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, order));
  };
  return mix(mix_x(neighbour(OF_BOTH_HALVES(0)), neighbour(OF_BOTH_HALVES(3)), across),
             mix_x(neighbour(OF_BOTH_HALVES(8)), neighbour(OF_BOTH_HALVES(11)), across), along);
}

template <class Out>
AVX2 void linear_inside_avx2(Out *__restrict out, const Source<2, uint8_t> &s, int64_t begin, int64_t end) {
  // Repeats a weight for the four values of each half: pixels 0 and 1, pixels 2 and 3.
  const __m256i first = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), second = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
  const __m256 half = _mm256_set1_ps(0.49999997f);
  const __m128i pixels = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const uint8_t *const data = s.data;
  const int64_t down = s.step[1];
  const float *const across = s.weight[0], *const along = s.weight[1];
  in_fours(
      out, s, begin, end, [&](int64_t x, const int32_t *at) __attribute__((target("avx2"), always_inline)) {
        const __m256 qx = _mm256_broadcast_ps((const __m128 *)(across + x));
        const __m256 qy = _mm256_broadcast_ps((const __m128 *)(along + x));
        const __m256 a = two_linear(data + at[0], data + at[1], down, _mm256_permutevar_ps(qx, first),
                                    _mm256_permutevar_ps(qy, first));
        const __m256 b = two_linear(data + at[2], data + at[3], down, _mm256_permutevar_ps(qx, second),
                                    _mm256_permutevar_ps(qy, second));
        Out *const to = out + 3 * x;
        if constexpr (sizeof(Out) == 1) {
          const __m256i words = _mm256_packus_epi32(_mm256_cvttps_epi32(_mm256_add_ps(a, half)),
                                                    _mm256_cvttps_epi32(_mm256_add_ps(b, half)));
          // Pixels 0, 2 and 1, 3 of four bytes each.
          const __m256i bytes = _mm256_packus_epi16(words, words);
          const __m128i four = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
          const __m128i packed = _mm_shuffle_epi8(four, pixels);
          _mm_storel_epi64((__m128i *)to, packed);
          const int rest = _mm_extract_epi32(packed, 2);
          __builtin_memcpy(to + 8, &rest, 4);
        } else {
          // The unused fourth value of a pixel is overwritten by the next pixel.
          _mm_storeu_ps((float *)to, _mm256_castps256_ps128(a));
          _mm_storeu_ps((float *)to + 3, _mm256_extractf128_ps(a, 1));
          _mm_storeu_ps((float *)to + 6, _mm256_castps256_ps128(b));
          const __m128 fourth = _mm256_extractf128_ps(b, 1);
          _mm_storel_pi((__m64 *)(to + 9), fourth);
          _mm_store_ss((float *)to + 11, _mm_movehl_ps(fourth, fourth));
        }
      });
}
#undef THREE
#undef OF_BOTH_HALVES
#undef AVX2
#undef AVX2_INLINE

#pragma GCC diagnostic push
// GCC 12 warns about _mm512_undefined by mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

// Eight bytes from each of two addresses.
AVX512 inline __m128i two_rows(const uint8_t *a, const uint8_t *b) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
}

// Left and right neighbours of four pixels in a row, as floats: three channels and an unused value each.
AVX512 inline void neighbours_of_four(const uint8_t *const p[4], int64_t offset, __m512 *left, __m512 *right) {
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, -1, 8, 9, 10, -1, 3, 4, 5, -1, 11, 12, 13, -1));
  const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(two_rows(p[0] + offset, p[1] + offset)),
                                                two_rows(p[2] + offset, p[3] + offset), 1);
  const __m256i sorted = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bytes, order), 0xd8);
  *left = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(sorted)));
  *right = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(sorted, 1)));
}

AVX512 inline __m512 weights_of_four(const float *weight) {
  const __m512i each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  return _mm512_permutexvar_ps(each, _mm512_castps128_ps512(_mm_loadu_ps(weight)));
}
AVX512 inline __m512 mix(__m512 a, __m512 b, __m512 q) {
  return _mm512_add_ps(a, _mm512_mul_ps(_mm512_sub_ps(b, a), q));
}
AVX512 inline __m512 mix_x(__m512 a, __m512 b, __m512 q) {
  return _mm512_add_ps(_mm512_mul_ps(a, _mm512_sub_ps(_mm512_set1_ps(1), q)), _mm512_mul_ps(b, q));
}

// As linear_inside, for four pixels at a time.
template <class Out>
AVX512 void linear_inside_avx512(Out *__restrict out, const Source<2, uint8_t> &s, int64_t begin, int64_t end) {
  const __m128i pixels = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m512 half = _mm512_set1_ps(0.49999997f);
  const int64_t down = s.step[1];
  const uint8_t *const last = end_of(s) - 8 - down;
  const Places places(s);
  const float *const across = s.weight[0], *const along = s.weight[1];
  int64_t x = begin;
  for (; x + 4 <= end; x += 4) {
    const uint8_t *const p[4] = {places[x], places[x + 1], places[x + 2], places[x + 3]};
    if (p[0] > last || p[1] > last || p[2] > last || p[3] > last) {
      linear_inside(out, s, x, x + 4);
      continue;
    }
    __m512 left, right;
    const __m512 qx = weights_of_four(across + x), qy = weights_of_four(along + x);
    neighbours_of_four(p, 0, &left, &right);
    const __m512 upper = mix_x(left, right, qx);
    neighbours_of_four(p, down, &left, &right);
    const __m512 value = mix(upper, mix_x(left, right, qx), qy);
    if constexpr (sizeof(Out) == 1) {
      const __m512i whole = _mm512_cvttps_epi32(_mm512_add_ps(value, half));
      const __m128i bytes = _mm_shuffle_epi8(_mm512_cvtusepi32_epi8(whole), pixels);
      _mm_mask_storeu_epi8(out + 3 * x, 0xfff, bytes);
    } else {
      _mm512_mask_storeu_ps(out + 3 * x, 0xfff, _mm512_maskz_compress_ps(0x7777, value));
    }
  }
  linear_inside_avx2(out, s, x, end);
}
#undef AVX512
#pragma GCC diagnostic pop
#endif

#ifdef __aarch64__
// Lanes are pixels, so that weights need not be repeated: four pixels of one channel in a vector.
template <class Out>
void linear_inside_neon(Out *__restrict out, const Source<2, uint8_t> &s, int64_t begin, int64_t end) {
  constexpr uint8_t z = 255;  // an out-of-range index, which gives 0
  // The low bytes of three vectors, which alternate.
  const uint8x16_t squeeze = {0, 16, 32, 4, 20, 36, 8, 24, 40, 12, 28, 44, z, z, z, z};
  const float32x4_t half = vdupq_n_f32(0.49999997f), one = vdupq_n_f32(1);
  const uint8_t *const data = s.data, *const below = s.data + s.step[1];
  const float *const across = s.weight[0], *const along = s.weight[1];
  in_fours(
      out, s, begin, end, [&](int64_t x, const int32_t *at) __attribute__((always_inline)) {
        const float32x4_t qx = vld1q_f32(across + x), qy = vld1q_f32(along + x), rest = vsubq_f32(one, qx);
        const uint32_t place[4] = {(uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2], (uint32_t)at[3]};
        // The left neighbours' channels, then the right ones', each of four pixels.
        auto neighbours = [&](const uint8_t *from, float32x4_t to[6]) __attribute__((always_inline)) {
          auto pixel = [&](int j) { return vcombine_u8(vld1_u8(from + place[j]), vdup_n_u8(0)); };
          const uint8x16_t even = vzip1q_u8(pixel(0), pixel(2)), odd = vzip1q_u8(pixel(1), pixel(3));
          const uint8x16_t low = vzip1q_u8(even, odd), high = vzip2q_u8(even, odd);  // bytes 0 to 3, bytes 4 to 7
          const uint16x8_t words[3] = {vmovl_u8(vget_low_u8(low)), vmovl_high_u8(low), vmovl_u8(vget_low_u8(high))};
          for (int k = 0; k < 3; k++) {
            to[2 * k] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(words[k])));
            to[2 * k + 1] = vcvtq_f32_u32(vmovl_high_u16(words[k]));
          }
        };
        float32x4_t here[6], there[6];
        neighbours(data, here);
        neighbours(below, there);
        float32x4x3_t v;
        for (int c = 0; c < 3; c++) {
          // As warp_mix_x and warp_mix.
          const float32x4_t upper = vaddq_f32(vmulq_f32(here[c], rest), vmulq_f32(here[3 + c], qx));
          const float32x4_t lower = vaddq_f32(vmulq_f32(there[c], rest), vmulq_f32(there[3 + c], qx));
          v.val[c] = vaddq_f32(upper, vmulq_f32(vsubq_f32(lower, upper), qy));
        }
        Out *const to = out + 3 * x;
        if constexpr (sizeof(Out) == 1) {
          uint8x16x3_t whole;
          for (int c = 0; c < 3; c++) whole.val[c] = vreinterpretq_u8_u32(vcvtq_u32_f32(vaddq_f32(v.val[c], half)));
          const uint8x16_t packed = vqtbl3q_u8(whole, squeeze);
          vst1_u8((uint8_t *)to, vget_low_u8(packed));
          vst1q_lane_u32((uint32_t *)((uint8_t *)to + 8), vreinterpretq_u32_u8(packed), 2);
        } else {
          vst3q_f32((float *)to, v);
        }
      });
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
// Images with pixels of three bytes: copies four bytes per pixel; the next pixel overwrites the fourth.
inline void nearest_inside_bytes(uint8_t *__restrict out, const Source<2, uint8_t> &s, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 128;
  const uint8_t *const data = s.data;
  const int32_t row = (int32_t)s.step[1], last = (int32_t)(s.step[1] * s.extent[1] - 4);
  int32_t offset[kBlock];
  for (int64_t first = begin; first < end; first += kBlock) {
    const int32_t n = (int32_t)(end - first < kBlock ? end - first : kBlock);
    const bool all = offsets_of(offset, s.index[0] + first, s.index[1] + first, n, row) <= last;
    uint8_t *__restrict to = out + 3 * first;
    const int32_t four = all ? n - 1 : 0;
    for (int32_t i = 0; i < four; i++) __builtin_memcpy(to + 3 * i, data + offset[i], 4);
    for (int32_t i = four; i < n; i++) __builtin_memcpy(to + 3 * i, data + offset[i], 3);
  }
}
#endif

template <class Out, int kDims, class In>
void linear_inside_fastest(Out *out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
#ifdef __x86_64__
  if constexpr (kDims == 2 && sizeof(In) == 1) {
    static const int level = __builtin_cpu_supports("x86-64-v4") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
    if (level && s.channels == 3 && s.step[1] * s.extent[1] <= INT32_MAX)
      return level == 2 ? linear_inside_avx512(out, s, begin, end) : linear_inside_avx2(out, s, begin, end);
  }
#endif
#ifdef __aarch64__
  if constexpr (kDims == 2 && sizeof(In) == 1)
    if (s.channels == 3 && s.step[1] * s.extent[1] <= INT32_MAX) return linear_inside_neon(out, s, begin, end);
#endif
  linear_inside(out, s, begin, end);
}

template <class Out, int kDims, class In>
CLONES void nearest_inside(Out *__restrict out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
  const int channels = s.channels;
  for (int64_t x = begin; x < end; x++) {
    const In *p = s.data;
    for (int d = 0; d < kDims; d++) p += s.index[d][x] * s.step[d];
    if (channels == 3) {
      const Out o[3] = {saturate<Out>(p[0]), saturate<Out>(p[1]), saturate<Out>(p[2])};
      __builtin_memcpy(out + 3 * x, o, sizeof o);
    } else {
      for (int c = 0; c < channels; c++) out[x * channels + c] = saturate<Out>(p[c]);
    }
  }
}

template <class Out, int kDims, class In>
void nearest_inside_fastest(Out *out, const Source<kDims, In> &s, int64_t begin, int64_t end) {
#if defined(__x86_64__) || defined(__aarch64__)
  if constexpr (kDims == 2 && sizeof(In) == 1 && sizeof(Out) == 1)
    if (s.channels == 3 && s.step[1] * s.extent[1] <= INT32_MAX) return nearest_inside_bytes(out, s, begin, end);
#endif
  nearest_inside(out, s, begin, end);
}

}  // namespace
