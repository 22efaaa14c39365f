// SPDX-License-Identifier: Apache-2.0
// Power spectra of real signals of a length that is known when this is compiled, LANES of them at a time by a block of
// threads, in shared memory. Pairs of samples are taken as complex numbers, of which there are `kComplex`; these are
// transformed by radices (decimation in frequency). The first step takes them from where the signals are, the last one
// gives powers away, so that shared memory is passed as often as there are radices, less one.
//
// Complex number r of signal w lies at z[row(r) * kPitch + w]. Steps that go along the numbers and steps that go along
// the signals both meet different banks.
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
  static constexpr int kRows = kComplex + kParts;
  static constexpr int kRoom = kRows * kPitch + kComplex + kComplex / 2 + 1;  // elements of its memory
  float2 *z, *turns;
  float2 *halves;  // halves[k] = exp(-2 pi i k / kLength)

  DEVICE explicit FixedFft(float2 *memory) : z(memory), turns(z + kRows * kPitch), halves(turns + kComplex) {
    int length = kComplex;
    float2 *to = turns;
    (void)((length > R ? (make_turns<R>(to, length), to += length - length / R, length /= R) : 0), ...);
    for (int i = threadIdx.x; i <= kComplex / 2; i += blockDim.x) halves[i] = turn(i, kLength);
  }
  DEVICE void begin(int) {}
  // The factors behind a step of radix RADIX: of element k of transform j, k > 0.
  template <int RADIX>
  DEVICE static void make_turns(float2 *to, int length) {
    const int m = length / RADIX;
    for (int i = threadIdx.x; i < length - m; i += blockDim.x) to[i] = turn((i / m + 1) * (i % m), length);
  }
  DEVICE static int row(int r) { return r + r / kLast; }

  // Calls fetch(x, w, j, m) for x[k] = complex number j + k * m of signal w, and emit(k, w, |X[k]|^2), for the signals
  // w < here. Neighbouring threads fetch neighbouring numbers, or signals, and give neighbouring frequencies, or
  // signals.
  template <class Fetch, class Emit>
  DEVICE void powers(int here, bool by_number, const Fetch &fetch, bool by_frequency, const Emit &emit) const {
    __syncthreads();
    first(here, by_number, fetch);
    __syncthreads();
    middle(here);
    last(here, by_frequency, emit);
  }
  template <class Fetch>
  DEVICE void first(int here, bool by_number, const Fetch &fetch) const {
    constexpr int m = kComplex / kFirst;
    for (int item = threadIdx.x; item < m * LANES; item += blockDim.x) {
      const int w = by_number ? item / m : item % LANES, j = by_number ? item - w * m : item / LANES;
      if (w >= here) continue;
      float2 x[kFirst];
      fetch(x, w, j, m);
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
  // Which part of the last step has the frequencies p, p + kParts, p + 2 kParts ...
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
  // Frequencies k and kComplex - k of the complex numbers make those of the real ones: parts p and kParts - p are done
  // by one thread, and so are 0 and kParts / 2, which pair up in themselves.
  template <class Emit>
  DEVICE void last(int here, bool by_frequency, const Emit &emit) const {
    constexpr int kUnits = (kParts + 1) / 2, kHalf = kParts / 2;
    for (int item = threadIdx.x; item < kUnits * LANES; item += blockDim.x) {
      const int w = by_frequency ? item / kUnits : item % LANES, p = by_frequency ? item - w * kUnits : item / LANES;
      if (w >= here) continue;
      float2 a[kLast], b[kLast];
      transform_part(a, p, w);
      if (p || kParts % 2 == 0) transform_part(b, p ? kParts - p : kHalf, w);
      if (p) {
#pragma unroll
        for (int k = 0; k < kLast; k++) {
          const int other = kLast - 1 - k;
          if (k <= other)
            emit_pair(p + k * kParts, w, a[k], b[other], emit);
          else
            emit_pair(kParts - p + other * kParts, w, b[other], a[k], emit);
        }
      } else {
        emit(0, w, (a[0].x + a[0].y) * (a[0].x + a[0].y));
        emit(kComplex, w, (a[0].x - a[0].y) * (a[0].x - a[0].y));
#pragma unroll
        for (int k = 1; k < (kLast + 1) / 2; k++) emit_pair(k * kParts, w, a[k], a[kLast - k], emit);
        if (kLast % 2 == 0) emit(kComplex / 2, w, squared(a[kLast / 2]));
        if (kParts % 2 == 0) {
#pragma unroll
          for (int k = 0; k < kLast / 2; k++) emit_pair(kHalf + k * kParts, w, b[k], b[kLast - 1 - k], emit);
          if (kLast % 2) emit(kComplex / 2, w, squared(b[kLast / 2]));
        }
      }
    }
  }
  // Of the complex numbers' frequencies k <= kComplex / 2 and kComplex - k.
  template <class Emit>
  DEVICE void emit_pair(int k, int w, const float2 &a, const float2 &b, const Emit &emit) const {
    const float2 other = conjugate(b), even = a + other, d = a - other;
    const float2 odd = times(make_float2(d.y, -d.x), halves[k]);
    emit(k, w, 0.25f * squared(even + odd));
    emit(kComplex - k, w, 0.25f * squared(even - odd));
  }
};
