// SPDX-License-Identifier: Apache-2.0
// Power spectra of real signals of a compile-time length, LANES of them at a time by a block of threads, in shared
// memory. Sample pairs are taken as `kComplex` complex numbers, which are transformed by radices (decimation in
// frequency). The first step reads the signals, the last one computes powers in registers.
//
// Complex number r of signal w is at z[row(r) * kPitch + w]. Neither steps along the numbers nor steps along the
// signals have bank conflicts.
#pragma once
#include "audio/gpu_butterflies.h"

template <int LANES, int... R>
struct FixedFft {
  static constexpr int kLanes = LANES, kPitch = LANES + 1, kRadices = sizeof...(R);
  static constexpr int kComplex = (1 * ... * R), kLength = 2 * kComplex;
  static_assert(kRadices >= 2, "");
  DEVICE static constexpr int radix(int i) {
    const int radices[] = {R...};
    return radices[i];
  }
  static constexpr int kFirst = radix(0), kLast = radix(kRadices - 1);
  static constexpr int kParts = kComplex / kLast;  // transforms of the last step
  static constexpr int kUnits = (kParts + 1) / 2, kThreads = kUnits * LANES;
  static constexpr int kRows = kComplex + kParts;
  static constexpr int kPowersPitch = LANES + (LANES < 4 ? 0 : 4);
  static_assert((kComplex + 1) * kPowersPitch <= 2 * kRows * kPitch, "");
  static constexpr int kRoom = (kRows * kPitch + kComplex + kComplex / 2 + 2) / 2 * 2;  // elements of its memory
  float2 *const z, *const turns;
  float2 *const halves;  // halves[k] = exp(-2 pi i k / kLength)

  DEVICE explicit FixedFft(float2 *memory) : z(memory), turns(z + kRows * kPitch), halves(turns + kComplex) {
    int length = kComplex;
    float2 *to = turns;
    (void)((length > R ? (make_turns<R>(to, length), to += length - length / R, length /= R) : 0), ...);
    for (int i = threadIdx.x; i <= kComplex / 2; i += blockDim.x) halves[i] = turn(i, kLength);
  }
  DEVICE void begin(int) {}
  // The twiddle factors after a step of radix RADIX: of element k > 0 of transform j.
  template <int RADIX>
  DEVICE static void make_turns(float2 *to, int length) {
    const int m = length / RADIX;
    for (int i = threadIdx.x; i < length - m; i += blockDim.x) to[i] = turn((i / m + 1) * (i % m), length);
  }
  DEVICE static int row(int r) { return r + r / kLast; }

  // Computes powers of the frequencies 0 ... kLength / 2 of the signals w < here; that of k is then at [k *
  // kPowersPitch + w], magnitudes if POWER is 1. fetch.all(x, w, j, m) sets x[k] to complex number j + k * m of signal
  // w; if it returns false, fetch.one(w, i) returns number i. Neighbouring threads fetch neighbouring numbers, or
  // signals. Needs at least kThreads threads.
  template <int POWER, class Fetch>
  DEVICE const float *run(int here, bool by_number, const Fetch &fetch) const {
    __syncthreads();
    first(here, by_number, fetch);
    __syncthreads();
    middle(here);
    last<POWER>(here);
    return (const float *)z;
  }
  // Like run, then calls emit(k, w, power). Neighbouring threads do so for neighbouring frequencies, or signals.
  template <int POWER, class Fetch, class Emit>
  DEVICE void powers(int here, bool by_number, const Fetch &fetch, bool by_frequency, const Emit &emit) const {
    constexpr int kBins = kComplex + 1;
    const float *const found = run<POWER>(here, by_number, fetch);
    for (int item = threadIdx.x; item < kBins * LANES; item += blockDim.x) {
      const int w = by_frequency ? item / kBins : item % LANES, k = by_frequency ? item - w * kBins : item / LANES;
      if (w < here) emit(k, w, found[k * kPowersPitch + w]);
    }
  }

 private:
  template <class Fetch>
  DEVICE void first(int here, bool by_number, const Fetch &fetch) const {
    constexpr int m = kComplex / kFirst;
    for (int item = threadIdx.x; item < m * LANES; item += blockDim.x) {
      const int w = by_number ? item / m : item % LANES, j = by_number ? item - w * m : item / LANES;
      if (w >= here) continue;
      float2 x[kFirst];
      if (!fetch.all(x, w, j, m)) {
#pragma unroll 1
        for (int k = 0; k < kFirst; k++) z[row(j + k * m) * kPitch + w] = fetch.one(w, j + k * m);
#pragma unroll
        for (int k = 0; k < kFirst; k++) x[k] = z[row(j + k * m) * kPitch + w];
      }
      Butterfly<kFirst>::run(x);
      turn_and_put<kFirst>(x, j, m, 0, w, turns);
    }
  }
  template <int RADIX>
  DEVICE void turn_and_put(float2 (&x)[RADIX], int j, int m, int begin, int w, const float2 *by) const {
#pragma unroll
    for (int k = 1; k < RADIX; k++) x[k] = times(x[k], by[(k - 1) * m + j]);
#pragma unroll
    for (int k = 0; k < RADIX; k++) z[row(begin + j + k * m) * kPitch + w] = x[k];
  }
  DEVICE void middle(int here) const {
    int step = 0, length = kComplex;
    const float2 *by = turns;
    (void)((step > 0 && step < kRadices - 1 ? one<R>(here, length, by) : (void)0, by += length - length / R,
            length /= R, step++),
           ...);
  }
  template <int RADIX>
  DEVICE void one(int here, int length, const float2 *by) const {
    const int m = length / RADIX;
    for (int item = threadIdx.x; item < kComplex / RADIX * LANES; item += blockDim.x) {
      const int w = item / (kComplex / RADIX), i = item - w * (kComplex / RADIX), part = i / m, j = i - part * m;
      if (w >= here) continue;
      float2 x[RADIX];
#pragma unroll
      for (int k = 0; k < RADIX; k++) x[k] = z[row(part * length + j + k * m) * kPitch + w];
      Butterfly<RADIX>::run(x);
      turn_and_put<RADIX>(x, j, m, part * length, w, by);
    }
    __syncthreads();
  }
  // The part of the last step that has the frequencies p, p + kParts, p + 2 kParts ...
  DEVICE static int part_of(int p) {
    int at = 0, rest = kComplex, step = 0;
    (void)((step++ < kRadices - 1 ? (rest /= R, at += p % R * (rest / kLast), p /= R) : 0), ...);
    return at;
  }
  DEVICE void transform_part(float2 (&x)[kLast], int p, int w) const {
    const float2 *from = z + part_of(p) * (kLast + 1) * kPitch + w;
#pragma unroll
    for (int k = 0; k < kLast; k++) x[k] = from[k * kPitch];
    Butterfly<kLast>::run(x);
  }
  // Frequencies k and kComplex - k of the complex numbers make those of the real ones: one thread does parts p and
  // kParts - p, and also 0 and kParts / 2, which pair up within themselves. Powers replace the numbers when all have
  // been read.
  template <int POWER>
  DEVICE void last(int here) const {
    constexpr int kHalf = kParts / 2;
    const int w = threadIdx.x % LANES, p = threadIdx.x / LANES;
    const bool is_used = p < kUnits && w < here;
    float2 a[kLast], b[kLast];
    if (is_used) {
      transform_part(a, p, w);
      if (p || kParts % 2 == 0) transform_part(b, p ? kParts - p : kHalf, w);
      if (p) {
#pragma unroll
        for (int k = 0; k < kLast; k++) {
          const int other = kLast - 1 - k;
          a[k] = k <= other ? pair(p + k * kParts, a[k], b[other]) : pair(kParts - p + other * kParts, b[other], a[k]);
        }
      } else {
        a[0] = make_float2((a[0].x + a[0].y) * (a[0].x + a[0].y), (a[0].x - a[0].y) * (a[0].x - a[0].y));
#pragma unroll
        for (int k = 1; k < (kLast + 1) / 2; k++) a[k] = pair(k * kParts, a[k], a[kLast - k]);
        if (kLast % 2 == 0) a[kLast / 2].x = squared(a[kLast / 2]);
        if (kParts % 2 == 0) {
#pragma unroll
          for (int k = 0; k < kLast / 2; k++) b[k] = pair(kHalf + k * kParts, b[k], b[kLast - 1 - k]);
          if (kLast % 2) b[kLast / 2].x = squared(b[kLast / 2]);
        }
      }
    }
    __syncthreads();
    if (is_used) {
      float *const to = (float *)z + w;
      const auto put = [&](int k, float power) { to[k * kPowersPitch] = POWER == 1 ? sqrtf(power) : power; };
      const auto put_pair = [&](int k, const float2 &powers) { put(k, powers.x), put(kComplex - k, powers.y); };
      if (p) {
#pragma unroll
        for (int k = 0; k < kLast; k++)
          put_pair(k <= kLast - 1 - k ? p + k * kParts : kParts - p + (kLast - 1 - k) * kParts, a[k]);
      } else {
#pragma unroll
        for (int k = 0; k < (kLast + 1) / 2; k++) put_pair(k * kParts, a[k]);
        if (kLast % 2 == 0) put(kComplex / 2, a[kLast / 2].x);
        if (kParts % 2 == 0) {
#pragma unroll
          for (int k = 0; k < kLast / 2; k++) put_pair(kHalf + k * kParts, b[k]);
          if (kLast % 2) put(kComplex / 2, b[kLast / 2].x);
        }
      }
    }
    __syncthreads();
  }
  // The powers of frequencies k <= kComplex / 2 and kComplex - k, from those of the complex numbers.
  DEVICE float2 pair(int k, const float2 &a, const float2 &b) const {
    const float2 other = conjugate(b), even = a + other, d = a - other;
    const float2 odd = times(make_float2(d.y, -d.x), halves[k]);
    return make_float2(0.25f * squared(even + odd), 0.25f * squared(even - odd));
  }
};
