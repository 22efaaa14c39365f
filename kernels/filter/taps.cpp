// SPDX-License-Identifier: Apache-2.0
#include "filter/taps.h"

// to = (begins ? 0 : before) + sum of N weighted rows. `to` may be `before`.
template <int N, class Out>
CLONES static void add_taps(Out *to, const float *before, const float *const *from, const float *weights, int64_t n,
                            bool begins) {
  const float *x[N];
  float w[N];
  for (int k = 0; k < N; k++) x[k] = from[k], w[k] = weights[k];
  if (begins) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      float sum = w[0] * x[0][i];
      for (int k = 1; k < N; k++) sum += w[k] * x[k][i];
      to[i] = saturate<Out>(sum);
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      float sum = before[i];
      for (int k = 0; k < N; k++) sum += w[k] * x[k][i];
      to[i] = saturate<Out>(sum);
    }
  }
}

template <class T>
CLONES static void to_floats(float *__restrict to, const void *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = (float)static_cast<const T *>(from)[i];
}

template <class T>
CLONES static void from_floats(T *__restrict to, const float *__restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = saturate<T>(from[i]);
}

template <class Out>
void RowSum::flush(Out *to) {
  switch (held_) {
#define TAPS(N)                                          \
  case N:                                                \
    add_taps<N>(to, sum_, rows_, weights_, n_, begins_); \
    break;
    TAPS(1) TAPS(2) TAPS(3) TAPS(4) TAPS(5) TAPS(6) TAPS(7) TAPS(8) TAPS(9)
#undef TAPS
  }
  held_ = 0, begins_ = false;
}
template void RowSum::flush(float *to);

void RowSum::finish(void *to, int dtype) {
  if (dtype == UINT8) return flush((uint8_t *)to);
  if (dtype == FLOAT) return flush((float *)to);
  // Other types are rare: not worth the compile time.
  flush(sum_);
  for_types<uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, half, double>(
      dtype, [&](auto t) { from_floats((decltype(t) *)to, sum_, n_); });
}

ToFloats to_floats_from(int dtype) {
  ToFloats found = nullptr;
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, half, float, double>(
      dtype, [&](auto t) { found = to_floats<decltype(t)>; });
  return found;
}
