// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms by a block of threads, LANES of them side by side: element i of transform w lies at
// z[i * pitch + w], in shared memory if it fits. They are computed in place, by radices (decimation in frequency), so
// that frequency k then lies at place(k). Lengths with large prime factors are convolutions of a length that is a power
// of two (Bluestein).
#pragma once
#include "core/gpu.h"

DEVICE float2 operator+(const float2 &a, const float2 &b) { return make_float2(a.x + b.x, a.y + b.y); }
DEVICE float2 operator-(const float2 &a, const float2 &b) { return make_float2(a.x - b.x, a.y - b.y); }
DEVICE float2 times(const float2 &a, const float2 &b) {
  return make_float2(__fmaf_rn(a.x, b.x, -(a.y * b.y)), __fmaf_rn(a.x, b.y, a.y * b.x));
}
DEVICE float2 conjugate(const float2 &a) { return make_float2(a.x, -a.y); }

// exp(-2 pi i k / n), computed from an angle of at most an eighth of a turn.
DEVICE float2 turn(int64_t k, int64_t n) {
  const int64_t quarter = (4 * k + n / 2) / n;
  float s, c;
  sincospif((float)(4 * k - quarter * n) / (float)(2 * n), &s, &c);
  const int q = (int)(quarter & 3);
  if (q == 0) return make_float2(c, -s);
  if (q == 1) return make_float2(-s, -c);
  return q == 2 ? make_float2(-c, s) : make_float2(s, c);
}

// A transform of R elements. roots[q] is exp(-2 pi i q / R), which odd R need.
template <int R>
struct Butterfly {
  static_assert(R % 2 == 1, "");
  DEVICE static void run(float2 (&x)[R], const float2 *roots) {
    constexpr int H = R / 2;
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
        const float2 w = roots[k * q % R];
        even = make_float2(__fmaf_rn(sum[q].x, w.x, even.x), __fmaf_rn(sum[q].y, w.x, even.y));
        odd = make_float2(__fmaf_rn(-difference[q].y, w.y, odd.x), __fmaf_rn(difference[q].x, w.y, odd.y));
      }
      x[k] = even + odd, x[R - k] = even - odd;
    }
  }
};
template <>
struct Butterfly<2> {
  DEVICE static void run(float2 (&x)[2], const float2 *) {
    const float2 a = x[0];
    x[0] = a + x[1], x[1] = a - x[1];
  }
};
template <>
struct Butterfly<4> {
  DEVICE static void run(float2 (&x)[4], const float2 *) {
    const float2 a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
    const float2 turned = make_float2(d.y, -d.x);
    x[0] = a + c, x[1] = b + turned, x[2] = a - c, x[3] = b - turned;
  }
};
// 4 transforms of R / 4 elements each, turned, and R / 4 of 4.
template <int R>
struct ButterflyByFours {
  DEVICE static void run(float2 (&x)[R], const float2 *) {
    constexpr int B = R / 4;
    // Of sixteenths of a turn.
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
      Butterfly<4>::run(part[j], nullptr);
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
      Butterfly<B>::run(across, nullptr);
#pragma unroll
      for (int j = 0; j < B; j++) x[k + 4 * j] = across[j];
    }
  }
};
template <>
struct Butterfly<8> : ButterflyByFours<8> {};
template <>
struct Butterfly<16> : ButterflyByFours<16> {};

// Splits transforms of `length` into R each, or, with BACK, joins them again: the transposed step.
// turns[i] is exp(-2 pi i i / (2 n)).
template <int R, bool BACK, int LANES>
DEVICE void split(float2 *z, int pitch, int n, int length, const float2 *turns) {
  const int m = length / R, between = 2 * (n / length);
  const int lane = threadIdx.x % LANES;
  float2 roots[R % 2 ? R : 1];
  if (R % 2)
#pragma unroll
    for (int q = 0; q < R; q++) roots[q] = turns[2 * (n / R) * q];
  for (int i = threadIdx.x / LANES; i < n / R; i += blockDim.x / LANES) {
    const int part = i / m, j = i - part * m;
    float2 *at = z + (int64_t)(part * length + j) * pitch + lane, x[R];
#pragma unroll
    for (int k = 0; k < R; k++) x[k] = at[(int64_t)k * m * pitch];
    if (BACK)
#pragma unroll
      for (int k = 1; k < R; k++) x[k] = times(x[k], turns[j * k * between]);
    Butterfly<R>::run(x, roots);
    if (!BACK)
#pragma unroll
      for (int k = 1; k < R; k++) x[k] = times(x[k], turns[j * k * between]);
#pragma unroll
    for (int k = 0; k < R; k++) at[(int64_t)k * m * pitch] = x[k];
  }
  __syncthreads();
}

// A length whose radices are known when this is compiled.
template <int... R>
struct FixedFft {
  static constexpr int kLength = (1 * ... * R);
  static constexpr bool kConvolves = false;
  DEVICE explicit FixedFft(int) {}
  DEVICE static constexpr int length() { return kLength; }
  DEVICE static constexpr int convolution() { return 0; }
  template <int LANES>
  DEVICE void run(float2 *z, int pitch, const float2 *turns) const {
    int rest = kLength;
    ((split<R, false, LANES>(z, pitch, kLength, rest, turns), rest /= R), ...);
  }
  DEVICE int place(int k) const {
    int at = 0, rest = kLength;
    ((rest /= R, at += k % R * rest, k /= R), ...);
    return at;
  }
};

// Any length.
struct AnyFft {
  static constexpr bool kConvolves = true;
  int n, m, count = 0;  // m: length of the convolution; 0: there is none
  int8_t radices[32];   // of the transform, or of the convolution

  DEVICE explicit AnyFft(int length) : n(length), m(0) {
    if (!factorise(n)) {
      for (m = 1; m < 2 * n - 1;) m *= 2;
      factorise(m);
    }
  }
  DEVICE bool factorise(int rest) {
    const int8_t known[] = {16, 8, 4, 2, 3, 5, 7, 11, 13};
    count = 0;
    for (int i = 0; i < 9; i++)
      for (; rest % known[i] == 0; rest /= known[i]) radices[count++] = known[i];
    return rest == 1;
  }
  DEVICE int length() const { return n; }
  DEVICE int convolution() const { return m; }
  DEVICE int place(int k) const {
    if (m) return k;
    int at = 0, rest = n;
    for (int i = 0; i < count; i++) {
      const int r = radices[i];
      rest /= r, at += k % r * rest, k /= r;
    }
    return at;
  }
  template <int LANES>
  DEVICE void run(float2 *z, int pitch, const float2 *turns) const {
    stages<false, LANES>(z, pitch, n, turns);
  }
  template <bool BACK, int LANES>
  DEVICE void stages(float2 *z, int pitch, int size, const float2 *turns) const {
    int rest = BACK ? 1 : size;
    for (int i = 0; i < count; i++) {
      const int r = radices[BACK ? count - 1 - i : i];
      if (BACK) rest *= r;
      one<BACK, LANES>(r, z, pitch, size, rest, turns);
      if (!BACK) rest /= r;
    }
  }
  template <bool BACK, int LANES>
  DEVICE void one(int r, float2 *z, int pitch, int size, int rest, const float2 *turns) const {
    if (r == 16) return split<16, BACK, LANES>(z, pitch, size, rest, turns);
    if (r == 8) return split<8, BACK, LANES>(z, pitch, size, rest, turns);
    if (r == 4) return split<4, BACK, LANES>(z, pitch, size, rest, turns);
    if (r == 2) return split<2, BACK, LANES>(z, pitch, size, rest, turns);
    if constexpr (!BACK) {
      if (r == 3) return split<3, false, LANES>(z, pitch, size, rest, turns);
      if (r == 5) return split<5, false, LANES>(z, pitch, size, rest, turns);
      if (r == 7) return split<7, false, LANES>(z, pitch, size, rest, turns);
      if (r == 11) return split<11, false, LANES>(z, pitch, size, rest, turns);
      if (r == 13) return split<13, false, LANES>(z, pitch, size, rest, turns);
    }
  }
};

// Powers of the frequencies 0 ... n / 2 of real signals: pairs of samples are taken as complex numbers where n is even.
// `memory` has room for what penstock/gpu/schemes/spectra.py says; `is_ready`: it holds the tables of this length.
template <class Fft, int LANES, bool IS_SHARED>
struct GpuRealFft {
  static constexpr int kPitch = LANES + (IS_SHARED && LANES > 1);  // so that neighbours lie in different banks
  int n;
  bool is_even;
  Fft fft;
  float2 *z, *turns, *longer, *filter, *turns_of_longer;

  DEVICE GpuRealFft(int samples, float2 *memory, bool is_ready)
      : n(samples), is_even(samples % 2 == 0), fft(samples % 2 ? samples : samples / 2) {
    const int size = fft.length(), m = fft.convolution();
    z = memory, turns = z + (int64_t)size * kPitch;
    longer = turns + 2 * size, filter = longer + (int64_t)m * kPitch, turns_of_longer = filter + m;
    __syncthreads();
    if (is_ready) return;
    for (int i = threadIdx.x; i < 2 * size; i += blockDim.x) turns[i] = turn(i, 2 * size);
    if constexpr (Fft::kConvolves) {
      for (int i = threadIdx.x; i < 2 * m; i += blockDim.x) turns_of_longer[i] = turn(i, 2 * m);
      __syncthreads();
      for (int i = threadIdx.x; i < m; i += blockDim.x) {
        const int j = i < size ? i : m - i;
        filter[i] = j < size ? conjugate(chirp(j)) : make_float2(0.0f, 0.0f);
      }
      __syncthreads();
      if (m) fft.template stages<false, 1>(filter, 1, m, turns_of_longer);
    }
    __syncthreads();
  }
  DEVICE float2 chirp(int j) const { return turns[(int64_t)j * j % (2 * fft.length())]; }
  // Sample i of signal w.
  DEVICE void put(int i, int w, float x) {
    if (is_even)
      ((float *)z)[((int64_t)(i >> 1) * kPitch + w) * 2 + (i & 1)] = x;
    else
      z[(int64_t)i * kPitch + w] = make_float2(x, 0.0f);
  }
  // By all threads, behind all of put().
  DEVICE void run() {
    __syncthreads();
    if constexpr (Fft::kConvolves)
      if (fft.m) return convolve();
    fft.template run<LANES>(z, kPitch, turns);
  }
  DEVICE void convolve() {
    const int size = fft.length(), m = fft.convolution();
    const auto each = [&](int n, auto f) {
      for (int i = threadIdx.x; i < n * LANES; i += blockDim.x) f(i / LANES, (int64_t)(i / LANES) * kPitch + i % LANES);
      __syncthreads();
    };
    each(m, [&](int j, int64_t at) { longer[at] = j < size ? times(z[at], chirp(j)) : make_float2(0.0f, 0.0f); });
    fft.template stages<false, LANES>(longer, kPitch, m, turns_of_longer);
    each(m, [&](int j, int64_t at) { longer[at] = conjugate(times(longer[at], filter[j])); });
    fft.template stages<true, LANES>(longer, kPitch, m, turns_of_longer);
    const float part = 1.0f / (float)m;
    each(size, [&](int j, int64_t at) {
      const float2 x = times(conjugate(longer[at]), chirp(j));
      z[at] = make_float2(x.x * part, x.y * part);
    });
  }
  // Calls f(k, w, |X[k]|^2) for the signals w < signals. Neighbouring threads take neighbouring frequencies or signals.
  template <class F>
  DEVICE void each_power(int signals, bool by_frequency, const F &f) const {
    const int half = n / 2, items = is_even ? half / 2 + 1 : half + 1;
    for (int i = threadIdx.x; i < items * LANES; i += blockDim.x) {
      const int w = by_frequency ? i / items : i % LANES, k = by_frequency ? i - w * items : i / LANES;
      if (w >= signals) continue;
      const float2 a = z[(int64_t)fft.place(k) * kPitch + w];
      if (!is_even) {
        f(k, w, squared(a));
      } else if (k == 0) {
        f(0, w, (a.x + a.y) * (a.x + a.y));
        f(half, w, (a.x - a.y) * (a.x - a.y));
      } else {
        const float2 b = z[(int64_t)fft.place(half - k) * kPitch + w];
        const float2 even = make_float2((a.x + b.x) * 0.5f, (a.y - b.y) * 0.5f);
        const float2 odd = times(make_float2((a.y + b.y) * 0.5f, (b.x - a.x) * 0.5f), turns[k]);
        f(k, w, squared(even + odd));
        if (2 * k != half) f(half - k, w, squared(even - odd));
      }
    }
  }
  DEVICE static float squared(const float2 &z) { return __fmaf_rn(z.x, z.x, z.y * z.y); }
};

// The memory of this block of threads: shared, or `room` elements of the scratch memory.
template <bool IS_SHARED>
DEVICE float2 *memory_of_block(const Launch &l, int64_t room) {
  DYNAMIC_SHARED(float2, shared);
  if (IS_SHARED) return shared;
  return (float2 *)l.scratch + (blockIdx.y * gridDim.x + blockIdx.x) * room;
}
