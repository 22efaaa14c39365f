// SPDX-License-Identifier: Apache-2.0
// Building blocks of discrete Fourier transforms: complex numbers, and transforms of few elements, the radices.
#pragma once
#include "core/gpu.h"

DEVICE float2 operator+(const float2 &a, const float2 &b) { return make_float2(a.x + b.x, a.y + b.y); }
DEVICE float2 operator-(const float2 &a, const float2 &b) { return make_float2(a.x - b.x, a.y - b.y); }
DEVICE float2 times(const float2 &a, const float2 &b) {
  return make_float2(__fmaf_rn(a.x, b.x, -(a.y * b.y)), __fmaf_rn(a.x, b.y, a.y * b.x));
}
DEVICE float2 conjugate(const float2 &a) { return make_float2(a.x, -a.y); }
DEVICE float squared(const float2 &z) { return __fmaf_rn(z.x, z.x, z.y * z.y); }

// exp(-2 pi i k / n) for 0 <= k < n < 2^29, computed from an angle of at most an eighth of a turn.
DEVICE float2 turn(int k, int n) {
  const int quarter = (int)((4u * (unsigned)k + (unsigned)n / 2) / (unsigned)n);
  float s, c;
  sincospif((float)(4 * k - quarter * n) / (float)(2 * n), &s, &c);
  const int q = quarter & 3;
  if (q == 0) return make_float2(c, -s);
  if (q == 1) return make_float2(-s, -c);
  return q == 2 ? make_float2(-c, s) : make_float2(s, c);
}

// cos(2 pi k / n) and sin(2 pi k / n) at compile time.
DEVICE constexpr double cosine(int k, int n) {
  const double angle = 6.283185307179586477 * k / n;
  double sum = 1, term = 1;
  for (int i = 1; i < 20; i++) term *= -angle * angle / ((2 * i - 1) * (2 * i)), sum += term;
  return sum;
}
DEVICE constexpr double sine(int k, int n) { return cosine(4 * k - n, 4 * n); }
template <int R>
struct Roots {
  float c[R] = {}, s[R] = {};
  DEVICE constexpr Roots() {
    for (int i = 0; i < R; i++) c[i] = (float)cosine(2 * i < R ? i : R - i, R), s[i] = (float)sine(i, R);
  }
};

// A transform of R elements.
template <int R>
struct Butterfly {
  static_assert(R % 2 == 1, "");
  DEVICE static void run(float2 (&x)[R]) {
    constexpr int H = R / 2;
    constexpr Roots<R> roots;
    float2 sum[H + 1], difference[H + 1], first = x[0];
#pragma unroll
    for (int q = 1; q <= H; q++) {
      sum[q] = x[q] + x[R - q], difference[q] = x[q] - x[R - q];
      x[0] = x[0] + sum[q];
    }
#pragma unroll
    for (int k = 1; k <= H; k++) {
      float2 even = first, odd = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int q = 1; q <= H; q++) {
        const float c = roots.c[k * q % R], s = -roots.s[k * q % R];
        even = make_float2(__fmaf_rn(sum[q].x, c, even.x), __fmaf_rn(sum[q].y, c, even.y));
        odd = make_float2(__fmaf_rn(-difference[q].y, s, odd.x), __fmaf_rn(difference[q].x, s, odd.y));
      }
      x[k] = even + odd, x[R - k] = even - odd;
    }
  }
};
template <>
struct Butterfly<2> {
  DEVICE static void run(float2 (&x)[2]) {
    const float2 a = x[0];
    x[0] = a + x[1], x[1] = a - x[1];
  }
};
template <>
struct Butterfly<4> {
  DEVICE static void run(float2 (&x)[4]) {
    const float2 a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
    const float2 turned = make_float2(d.y, -d.x);
    x[0] = a + c, x[1] = b + turned, x[2] = a - c, x[3] = b - turned;
  }
};
// 4 transforms of R / 4 elements, twiddle factors, then R / 4 transforms of 4.
template <int R>
struct ButterflyByFours {
  DEVICE static void run(float2 (&x)[R]) {
    constexpr int B = R / 4;
    // Of multiples of a sixteenth of a turn.
    const float c[] = {
        1.0f, 0.923879532511286756f, 0.707106781186547524f, 0.382683432365089772f, 0.0f, 0, -0.707106781186547524f, 0,
        0,    -0.923879532511286756f};
    const float s[] = {
        0.0f, 0.382683432365089772f, 0.707106781186547524f, 0.923879532511286756f, 1.0f, 0, 0.707106781186547524f, 0,
        0,    -0.382683432365089772f};
    float2 part[B][4];
#pragma unroll
    for (int j = 0; j < B; j++) {
#pragma unroll
      for (int k = 0; k < 4; k++) part[j][k] = x[j + B * k];
      Butterfly<4>::run(part[j]);
#pragma unroll
      for (int k = 1; k < 4; k++) {
        const int by = j * k * (16 / R);
        if (by == 4)
          part[j][k] = make_float2(part[j][k].y, -part[j][k].x);
        else if (by)
          part[j][k] = times(part[j][k], make_float2(c[by], -s[by]));
      }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      float2 across[B];
#pragma unroll
      for (int j = 0; j < B; j++) across[j] = part[j][k];
      Butterfly<B>::run(across);
#pragma unroll
      for (int j = 0; j < B; j++) x[k + 4 * j] = across[j];
    }
  }
};
template <>
struct Butterfly<8> : ButterflyByFours<8> {};
template <>
struct Butterfly<16> : ButterflyByFours<16> {};
