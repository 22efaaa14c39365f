// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of any length by a block of threads, LANES at a time: element i of transform w is at
// z[i * pitch + w], in shared memory if it fits. They run in place, by radices (decimation in frequency), so that
// frequency k is then at place(k). Lengths with large prime factors are convolutions of power-of-two length
// (Bluestein).
#pragma once
#include "audio/gpu_butterflies.h"

// Splits transforms of `length` into R each, or, with BACK, joins them again: the transposed step. turns[i] is
// exp(-2 pi i i / (2 n)).
template <int R, bool BACK, int LANES>
DEVICE void split(float2 *z, int pitch, int n, int length, const float2 *turns) {
  const int m = length / R, between = 2 * (n / length);
  const int lane = threadIdx.x % LANES;
  for (int i = threadIdx.x / LANES; i < n / R; i += blockDim.x / LANES) {
    const int part = i / m, j = i - part * m;
    float2 *at = z + (int64_t)(part * length + j) * pitch + lane, x[R];
#pragma unroll
    for (int k = 0; k < R; k++) x[k] = at[(int64_t)k * m * pitch];
    if (BACK)
#pragma unroll
      for (int k = 1; k < R; k++) x[k] = times(x[k], turns[j * k * between]);
    Butterfly<R>::run(x);
    if (!BACK)
#pragma unroll
      for (int k = 1; k < R; k++) x[k] = times(x[k], turns[j * k * between]);
#pragma unroll
    for (int k = 0; k < R; k++) at[(int64_t)k * m * pitch] = x[k];
  }
  __syncthreads();
}

// The steps for a length.
struct Steps {
  int n, m, count;     // m: length of the convolution; 0 if there is none
  int8_t radices[32];  // of the transform, or of the convolution

  DEVICE void of(int length) {
    n = length, m = 0;
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
  DEVICE int place(int k) const {
    if (m) return k;
    int at = 0, rest = n;
    for (int i = 0; i < count; i++) {
      const int r = radices[i];
      rest /= r, at += k % r * rest, k /= r;
    }
    return at;
  }
  template <bool BACK, int LANES>
  DEVICE void run(float2 *z, int pitch, int size, const float2 *turns) const {
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

// Powers of the frequencies 0 ... n / 2 of real signals: sample pairs are taken as complex numbers if n is even.
// `memory` has the size given by penstock/gpu/schemes/spectra.py, in shared memory or elsewhere.
template <int LANES, bool IS_SHARED>
struct AnyFft {
  static constexpr int kLanes = LANES;
  static constexpr int kPitch = LANES + (IS_SHARED && LANES > 1);  // so that neighbours lie in different banks
  int n = 0;
  bool is_even;
  Steps steps;
  float2 *const z, *turns, *longer, *filter, *turns_of_longer;

  DEVICE explicit AnyFft(float2 *memory) : z(memory) {}
  // Called by all threads: prepares for signals of this many samples.
  DEVICE void begin(int samples) {
    if (samples == n) return;
    n = samples, is_even = n % 2 == 0;
    steps.of(is_even ? n / 2 : n);
    const int size = steps.n, m = steps.m;
    turns = z + (int64_t)size * kPitch;
    longer = turns + 2 * size, filter = longer + (int64_t)m * kPitch, turns_of_longer = filter + m;
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * size; i += blockDim.x) turns[i] = turn(i, 2 * size);
    for (int i = threadIdx.x; i < 2 * m; i += blockDim.x) turns_of_longer[i] = turn(i, 2 * m);
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
      const int j = i < size ? i : m - i;
      filter[i] = j < size ? conjugate(chirp(j)) : make_float2(0.0f, 0.0f);
    }
    __syncthreads();
    if (m) steps.run<false, 1>(filter, 1, m, turns_of_longer);
  }
  DEVICE float2 chirp(int j) const { return turns[(int64_t)j * j % (2 * steps.n)]; }

  // As FixedFft::powers.
  template <int POWER, class Fetch, class Emit>
  DEVICE void powers(int here, bool by_number, const Fetch &fetch, bool by_frequency, const Emit &emit) const {
    const int pairs = (n + 1) / 2;
    __syncthreads();
    for (int64_t item = threadIdx.x; item < (int64_t)pairs * LANES; item += blockDim.x) {
      const int w = (int)(by_number ? item / pairs : item % LANES);
      const int i = (int)(by_number ? item - (int64_t)w * pairs : item / LANES);
      const float2 x = w < here ? fetch.one(w, i) : make_float2(0.0f, 0.0f);
      if (is_even) {
        z[(int64_t)i * kPitch + w] = x;
      } else {
        z[(int64_t)2 * i * kPitch + w] = make_float2(x.x, 0.0f);
        if (2 * i + 1 < n) z[((int64_t)2 * i + 1) * kPitch + w] = make_float2(x.y, 0.0f);
      }
    }
    __syncthreads();
    if (steps.m)
      convolve();
    else
      steps.run<false, LANES>(z, kPitch, steps.n, turns);
    const int half = n / 2, items = is_even ? half / 2 + 1 : half + 1;
    const auto put = [&](int k, int w, float power) { emit(k, w, POWER == 1 ? sqrtf(power) : power); };
    for (int i = threadIdx.x; i < items * LANES; i += blockDim.x) {
      const int w = by_frequency ? i / items : i % LANES, k = by_frequency ? i - w * items : i / LANES;
      if (w >= here) continue;
      const float2 a = z[(int64_t)steps.place(k) * kPitch + w];
      if (!is_even) {
        put(k, w, squared(a));
      } else if (k == 0) {
        put(0, w, (a.x + a.y) * (a.x + a.y));
        put(half, w, (a.x - a.y) * (a.x - a.y));
      } else {
        const float2 b = z[(int64_t)steps.place(half - k) * kPitch + w];
        const float2 even = make_float2((a.x + b.x) * 0.5f, (a.y - b.y) * 0.5f);
        const float2 odd = times(make_float2((a.y + b.y) * 0.5f, (b.x - a.x) * 0.5f), turns[k]);
        put(k, w, squared(even + odd));
        if (2 * k != half) put(half - k, w, squared(even - odd));
      }
    }
  }
  DEVICE void convolve() const {
    const int size = steps.n, m = steps.m;
    const auto each = [&](int n, auto f) {
      for (int i = threadIdx.x; i < n * LANES; i += blockDim.x) f(i / LANES, (int64_t)(i / LANES) * kPitch + i % LANES);
      __syncthreads();
    };
    each(m, [&](int j, int64_t at) { longer[at] = j < size ? times(z[at], chirp(j)) : make_float2(0.0f, 0.0f); });
    steps.run<false, LANES>(longer, kPitch, m, turns_of_longer);
    each(m, [&](int j, int64_t at) { longer[at] = conjugate(times(longer[at], filter[j])); });
    steps.run<true, LANES>(longer, kPitch, m, turns_of_longer);
    const float part = 1.0f / (float)m;
    each(size, [&](int j, int64_t at) {
      const float2 x = times(conjugate(longer[at]), chirp(j));
      z[at] = make_float2(x.x * part, x.y * part);
    });
  }
};
