// SPDX-License-Identifier: Apache-2.0
// Several signals in parallel: a vector register holds the same element of each, so that any formula for one signal is
// computed for all at once.
#pragma once
#include <cstdint>
#include <cstring>

// Functions that take or return vectors are inlined, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

constexpr int kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));

#define ALWAYS_INLINE inline __attribute__((always_inline))

template <class V>
ALWAYS_INLINE V load(const float *p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
ALWAYS_INLINE void store(float *p, const V &v) {
  std::memcpy(p, &v, sizeof v);
}

// Transposes.
ALWAYS_INLINE void transpose(Four (&r)[4]) {
  const Four a = __builtin_shuffle(r[0], r[1], FourInts{0, 4, 1, 5});
  const Four b = __builtin_shuffle(r[0], r[1], FourInts{2, 6, 3, 7});
  const Four c = __builtin_shuffle(r[2], r[3], FourInts{0, 4, 1, 5});
  const Four d = __builtin_shuffle(r[2], r[3], FourInts{2, 6, 3, 7});
  r[0] = __builtin_shuffle(a, c, FourInts{0, 1, 4, 5});
  r[1] = __builtin_shuffle(a, c, FourInts{2, 3, 6, 7});
  r[2] = __builtin_shuffle(b, d, FourInts{0, 1, 4, 5});
  r[3] = __builtin_shuffle(b, d, FourInts{2, 3, 6, 7});
}

// to[i] holds element i of `signals` signals, which begin at `from`, `pitch` apart; lanes beyond are 0.
ALWAYS_INLINE void gather_lanes(Lanes *to, const float *from, int64_t pitch, int64_t n, int64_t signals) {
  int64_t i = 0;
  float *flat = (float *)to;
  if (signals >= kLanes) {
    for (; i + 4 <= n; i += 4)
      for (int lane = 0; lane < kLanes; lane += 4) {
        Four r[4];
        for (int k = 0; k < 4; k++) r[k] = load<Four>(from + (lane + k) * pitch + i);
        transpose(r);
        for (int k = 0; k < 4; k++) store(flat + (i + k) * kLanes + lane, r[k]);
      }
  }
  for (; i < n; i++)
    for (int lane = 0; lane < kLanes; lane++) flat[i * kLanes + lane] = lane < signals ? from[lane * pitch + i] : 0;
}

// The reverse; lanes beyond `signals` are not written.
ALWAYS_INLINE void scatter_lanes(float *to, int64_t pitch, const Lanes *from, int64_t n, int64_t signals) {
  int64_t i = 0;
  const float *flat = (const float *)from;
  if (signals >= kLanes) {
    for (; i + 4 <= n; i += 4)
      for (int lane = 0; lane < kLanes; lane += 4) {
        Four r[4];
        for (int k = 0; k < 4; k++) r[k] = load<Four>(flat + (i + k) * kLanes + lane);
        transpose(r);
        for (int k = 0; k < 4; k++) store(to + (lane + k) * pitch + i, r[k]);
      }
  }
  for (; i < n; i++)
    for (int lane = 0; lane < kLanes && lane < signals; lane++) to[lane * pitch + i] = flat[i * kLanes + lane];
}

// For signals already interleaved: element i of all of them is at from + i * pitch.
ALWAYS_INLINE void read_lanes(Lanes *to, const float *from, int64_t pitch, int64_t n, int64_t signals) {
  if (signals >= kLanes) {
    for (int64_t i = 0; i < n; i++) to[i] = load<Lanes>(from + i * pitch);
    return;
  }
  std::memset((void *)to, 0, n * sizeof(Lanes));
  for (int64_t i = 0; i < n; i++) std::memcpy((void *)(to + i), from + i * pitch, signals * sizeof(float));
}
ALWAYS_INLINE void write_lanes(float *to, int64_t pitch, const Lanes *from, int64_t n, int64_t signals) {
  if (signals >= kLanes) {
    for (int64_t i = 0; i < n; i++) store(to + i * pitch, from[i]);
    return;
  }
  for (int64_t i = 0; i < n; i++) std::memcpy(to + i * pitch, (const void *)(from + i), signals * sizeof(float));
}
