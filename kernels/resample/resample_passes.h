// SPDX-License-Identifier: Apache-2.0
// The two passes over a tile: `down` combines rows of the input into rows in shared memory; `across` makes from them
// kQuad pixels of a column of the output.
#pragma once
#include "core/gpu_chain.h"
#include "core/gpu_dots.h"
#include "resample/gpu_taps.h"

constexpr int kQuad = 4;  // rows per thread at once

template <class A, class B>
struct IsSame {
  static constexpr bool value = false;
};
template <class A>
struct IsSame<A, A> {
  static constexpr bool value = true;
};

// Images of interleaved bytes in fixed point. Rows in shared memory hold (value - 128) * 128 as int16; pixels of
// several channels have 8 bytes. One instruction handles two taps.
template <int C>
struct FixedPasses {
  static constexpr int kWords = C;               // words of 4 pixels in the input
  static constexpr int kPixel = C == 1 ? 1 : 4;  // int16 values per pixel
  static constexpr int kDownShift = kGpuWeightBits - 7, kAcrossShift = kGpuWeightBits + 7;
  DEVICE static int words(int pixels) { return (pixels + 3) / 4 * 4 * kPixel / 2; }
  DEVICE static void prepare_column(float *w, int taps, int stride) { make_fixed_taps(w, taps, stride); }
  DEVICE static void prepare_row(float *w, int taps, int stride) {
    make_fixed_taps(w, taps, 1);
    int32_t *q = (int32_t *)w;
    for (int p = 0; p < stride / 2; p++) q[p] = q[2 * p] & 0xffff | (int32_t)((uint32_t)q[2 * p + 1] << 16);
  }

  struct Input {
    const uint8_t *data;
    int64_t pitch;
    bool aligned;
    DEVICE void begin(const Tensor &in) {
      data = in.as<uint8_t>();
      pitch = in.shape[1] * C;
      aligned = (((unsigned long long)data | (unsigned long long)pitch) & 3) == 0;
    }
  };

  // Reads `valid` bytes from p on as words.
  template <bool aligned>
  DEVICE static void read(uint32_t (&word)[kWords], const uint8_t *p, int valid) {
    const uint32_t *from = (const uint32_t *)((unsigned long long)p & ~3ull);
    if (aligned) {
#pragma unroll
      for (int i = 0; i < kWords; i++) word[i] = 4 * i < valid ? __ldg(from + i) : 0;
    } else {
      const int rest = (int)((unsigned long long)p & 3);
      uint32_t low = __ldg(from);
#pragma unroll
      for (int i = 0; i < kWords; i++) {
        const uint32_t high = 4 * i + 4 < valid + rest ? __ldg(from + i + 1) : 0;
        word[i] = __funnelshift_r(low, high, rest * 8);
        low = high;
      }
    }
  }
  template <bool aligned>
  DEVICE static void combine(int32_t (&sum)[4 * C], const uint8_t *p, const uint8_t *last, int64_t pitch, int valid,
                             const int32_t *weights, int pairs) {
    for (int k = 0; k < pairs; k++) {
      uint32_t a[kWords], b[kWords];
      const int32_t w = weights[k];
      read<aligned>(a, p, valid);
      p = p < last ? p + pitch : last;
      read<aligned>(b, p, valid);
      p = p < last ? p + pitch : last;
#pragma unroll
      for (int i = 0; i < kWords; i++) {
        const uint32_t x = __byte_perm(a[i], b[i], 0x5140), y = __byte_perm(a[i], b[i], 0x7362);
        sum[4 * i] = dot_halves<false>(w, x, sum[4 * i]);
        sum[4 * i + 1] = dot_halves<true>(w, x, sum[4 * i + 1]);
        sum[4 * i + 2] = dot_halves<false>(w, y, sum[4 * i + 2]);
        sum[4 * i + 3] = dot_halves<true>(w, y, sum[4 * i + 3]);
      }
    }
  }
  DEVICE static void down(const Input &in, int32_t *buffer, int row_words, const int32_t *first, const int32_t *weights,
                          int stride, int n, int height, int lo, int pixels) {
    const int groups = (pixels + 3) / 4;
    for (int item = threadIdx.x; item < n * groups; item += blockDim.x) {
      const int row = (int)((uint32_t)item / (uint32_t)groups), group = item - row * groups;
      const int64_t column = (int64_t)(lo + 4 * group) * C;
      const uint8_t *p = in.data + first[row] * in.pitch + column, *last = in.data + (height - 1) * in.pitch + column;
      const int rest = (pixels - 4 * group) * C, valid = rest < 4 * C ? rest : 4 * C;
      int32_t sum[4 * C];
#pragma unroll
      for (int i = 0; i < 4 * C; i++) sum[i] = (1 << (kDownShift - 1)) - (128 << (7 + kDownShift));
      if (in.aligned)
        combine<true>(sum, p, last, in.pitch, valid, weights + row * stride, stride / 2);
      else
        combine<false>(sum, p, last, in.pitch, valid, weights + row * stride, stride / 2);
#pragma unroll
      for (int i = 0; i < 4 * C; i++) sum[i] >>= kDownShift;
      int32_t *to = buffer + row * row_words + group * 2 * kPixel;
      if constexpr (C == 1) {
        *(uint2 *)to = make_uint2(__byte_perm(sum[0], sum[1], 0x5410), __byte_perm(sum[2], sum[3], 0x5410));
      } else {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          const int32_t *s = sum + i * C;
          ((uint4 *)to)[i / 2] =
              make_uint4(__byte_perm(s[0], s[1], 0x5410), __byte_perm(s[2], C == 4 ? s[3] : 0, 0x5410),
                         __byte_perm(s[C], s[C + 1], 0x5410), __byte_perm(s[C + 2], C == 4 ? s[C + 3] : 0, 0x5410));
        }
      }
    }
  }

  // Makes pixels of row r of the buffer and the next ones; there are n rows. `first` counts pixels of the buffer.
  DEVICE static void across(uint8_t (&pixel)[kQuad][C], const int32_t *buffer, int row_words, int r, int n, int first,
                            int, const int32_t *weights, int stride, int taps) {
    int32_t sum[kQuad][C];
    const int32_t *from[kQuad];
#pragma unroll
    for (int q = 0; q < kQuad; q++) {
      from[q] = buffer + (r + q < n ? r + q : n - 1) * row_words;
#pragma unroll
      for (int c = 0; c < C; c++) sum[q][c] = (1 << (kAcrossShift - 1)) + (128 << kAcrossShift);
    }
    for (int k = 0; k < taps; k++) {
      const int32_t w = weights[k * stride];
#pragma unroll
      for (int q = 0; q < kQuad; q++) {
        if constexpr (C == 1) {
          sum[q][0] += w * ((const int16_t *)from[q])[first + k];
        } else {
          const int2 v = ((const int2 *)from[q])[first + k];
          sum[q][0] += w * (int16_t)v.x;
          sum[q][1] += w * (v.x >> 16);
          sum[q][2] += w * (int16_t)v.y;
          if constexpr (C == 4) sum[q][3] += w * (v.y >> 16);
        }
      }
    }
#pragma unroll
    for (int q = 0; q < kQuad; q++)
#pragma unroll
      for (int c = 0; c < C; c++) {
        const int32_t v = sum[q][c] >> kAcrossShift;
        pixel[q][c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
      }
  }
};

// All other types in float, with the CPU's order of additions.
template <class To, class From>
struct FloatPasses {
  typedef Place<From> Input;
  typedef typename From::T In;
  static constexpr int C = From::C, kFour = 4 * sizeof(In);
  DEVICE static int words(int pixels) { return (pixels * C + 3) & ~3; }
  DEVICE static void prepare_column(float *, int, int) {}
  DEVICE static void prepare_row(float *, int, int) {}
  DEVICE static void down(const Input &in, int32_t *buffer, int row_words, const int32_t *first, const int32_t *weights,
                          int stride, int n, int height, int lo, int pixels) {
    if constexpr (From::kInterleaved)
      return down_fours(in, buffer, row_words, first, weights, stride, n, height, lo, pixels);
    const int row_items = pixels * C;
    for (int item = threadIdx.x; item < n * row_items; item += blockDim.x) {
      const int row = (int)((uint32_t)item / (uint32_t)row_items), e = item - row * row_items;
      // Neighbouring threads read neighbouring elements.
      const int c = From::kInterleaved ? e % C : e / pixels, x = From::kInterleaved ? e / C : e - c * pixels;
      const typename From::T *p = in.data + first[row] * in.step[0] + (lo + x) * in.step[1] + c * in.channel;
      const float *w = (const float *)weights + row * stride;
      const int most = height - first[row] < stride ? height - first[row] : stride;
      float sum = 0;
      for (int k = 0; k < most; k++, p += in.step[0])
        if (w[k] != 0) sum += w[k] * (float)load(p);
      ((float *)buffer)[row * row_words + e] = sum;
    }
  }
  // Reads four adjacent elements, of which `valid` exist. `aligned`: all groups of four are aligned to their size.
  DEVICE static void read_four(float (&v)[4], const In *p, int valid, bool aligned) {
    In x[4] __attribute__((aligned(16)));
    if (aligned && kFour <= 16) {
      if constexpr (kFour == 16)
        *(uint4 *)x = __ldg((const uint4 *)p);
      else if constexpr (kFour == 8)
        *(uint2 *)x = __ldg((const uint2 *)p);
      else if constexpr (kFour == 4)
        *(uint32_t *)x = __ldg((const uint32_t *)p);
    } else if constexpr (kFour == 4) {
      const uint32_t *word = (const uint32_t *)((unsigned long long)p & ~3ull);
      const int rest = (int)((unsigned long long)p & 3);
      const uint32_t low = __ldg(word), high = rest + valid > 4 ? __ldg(word + 1) : 0;
      *(uint32_t *)x = __funnelshift_r(low, high, rest * 8);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) x[i] = load(p + (i < valid ? i : 0));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = to_float(x[i]);
  }
  // Rows of interleaved pixels: a thread combines four adjacent elements.
  DEVICE static void down_fours(const Input &in, int32_t *buffer, int row_words, const int32_t *first,
                                const int32_t *weights, int stride, int n, int height, int lo, int pixels) {
    const int elements = pixels * C, groups = (elements + 3) / 4;
    const int64_t pitch = in.step[0];
    const bool aligned = (((unsigned long long)in.data | (unsigned long long)(pitch * sizeof(In))) & (kFour - 1)) == 0;
    for (int item = threadIdx.x; item < n * groups; item += blockDim.x) {
      const int row = (int)((uint32_t)item / (uint32_t)groups), e = (item - row * groups) * 4;
      const int valid = elements - e < 4 ? elements - e : 4;
      const In *p = in.data + first[row] * pitch + (int64_t)lo * C + e;
      const float *w = (const float *)weights + row * stride;
      const int most = height - first[row] < stride ? height - first[row] : stride;
      float sum[4] = {};
#pragma unroll 4
      for (int k = 0; k < most; k++, p += pitch) {
        if (IsFloat<In>::value && w[k] == 0) continue;
        float v[4];
        read_four(v, p, valid, aligned);
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] += w[k] * v[i];
      }
      *(float4 *)(buffer + row * row_words + e) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
  }
  DEVICE static void across(typename To::T (&pixel)[kQuad][C], const int32_t *buffer, int row_words, int r, int n,
                            int first, int pixels, const int32_t *weights, int stride, int taps) {
    float sum[kQuad][C] = {};
    for (int k = 0; k < taps; k++) {
      const float w = ((const float *)weights)[k * stride];
#pragma unroll
      for (int q = 0; q < kQuad; q++) {
        const float *from = (const float *)buffer + (r + q < n ? r + q : n - 1) * row_words;
#pragma unroll
        for (int c = 0; c < C; c++)
          sum[q][c] += w * from[From::kInterleaved ? (first + k) * C + c : c * pixels + first + k];
      }
    }
#pragma unroll
    for (int q = 0; q < kQuad; q++)
#pragma unroll
      for (int c = 0; c < C; c++) pixel[q][c] = saturate<typename To::T>(sum[q][c]);
  }
};

template <bool fixed, class To, class From>
struct PassesFor {
  typedef FloatPasses<To, From> Type;
};
template <class To, class From>
struct PassesFor<true, To, From> {
  typedef FixedPasses<From::C> Type;
};
template <class To, class From>
using Passes = typename PassesFor<IsSame<typename To::T, uint8_t>::value && IsSame<typename From::T, uint8_t>::value &&
                                      From::kInterleaved && From::C != 2,
                                  To, From>::Type;
