// SPDX-License-Identifier: Apache-2.0
#include "filter/median.h"

#include <cstring>

#include "filter/rows.h"

constexpr int64_t kAtOnce = 64;  // bytes: the longest vectors

// Calls Loop::run<bytes>(a...), compiled for the processor's vectors, with their length: compilers compare the elements
// of longer vectors one by one.
#if defined(__x86_64__) && !defined(__AVX2__)
template <class Loop, class... A>
__attribute__((target("arch=x86-64-v4"))) static void by_64_bytes(A... a) {
  Loop::template run<64>(a...);
}
template <class Loop, class... A>
__attribute__((target("arch=x86-64-v3"))) static void by_32_bytes(A... a) {
  Loop::template run<32>(a...);
}
template <class Loop, class... A>
static void by_vectors(A... a) {
  static const int level = __builtin_cpu_supports("x86-64-v4") ? 2 : __builtin_cpu_supports("x86-64-v3") ? 1 : 0;
  if (level == 2) return by_64_bytes<Loop>(a...);
  if (level == 1) return by_32_bytes<Loop>(a...);
  Loop::template run<16>(a...);
}
#else
template <class Loop, class... A>
static void by_vectors(A... a) {
#if defined(__AVX512BW__)
  Loop::template run<64>(a...);
#elif defined(__AVX2__)
  Loop::template run<32>(a...);
#else
  Loop::template run<16>(a...);
#endif
}
#endif

template <class T, int kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};

template <class V, class T>
MEDIAN_INLINE void load_vector(V &v, const T *p) {
  memcpy(&v, p, sizeof v);
}

// The median of N rows at each of n positions. Requires kAtOnce readable bytes after each row.
template <int N, class T>
struct SelectRows {
  template <int kBytes>
  MEDIAN_INLINE static void run(T *out, const T *const *rows, int64_t n) {
    typedef typename VectorOf<T, kBytes>::Type V;
    constexpr int64_t kLanes = kBytes / sizeof(T);
    for (int64_t i = 0; i < n; i += kLanes) {
      V v[kHeld<N>];
      int k = 0;
#pragma GCC unroll 16
      for (; k < kHeld<N>; k++) load_vector(v[k], rows[k] + i);
      forget_extremes<kHeld<N>>(
          v, [&](V & x) __attribute__((always_inline)) { load_vector(x, rows[k++] + i); });
      memcpy(out + i, &v[1], (n - i < kLanes ? n - i : kLanes) * sizeof(T));
    }
  }
};

// The same for any odd number of rows of unsigned integers. Finds the median's bits, highest first: fewer than half of
// the values lie below the median.
template <class Key>
struct SearchRows {
  template <int kBytes>
  MEDIAN_INLINE static void run(Key *out, const Key *const *rows, int64_t n_rows, int64_t n, int bits) {
    typedef typename VectorOf<Key, kBytes>::Type V;
    constexpr int kVectors = kAtOnce / kBytes;
    constexpr int64_t kLanes = kBytes / sizeof(Key), kStep = kAtOnce / sizeof(Key);
    const V half = V{} + (Key)(n_rows / 2);
    for (int64_t i = 0; i < n; i += kStep) {
      V median[kVectors] = {};
      for (int bit = bits - 1; bit >= 0; bit--) {
        const Key one = (Key)(1u << bit);
        V least[kVectors], below[kVectors] = {};
        for (int v = 0; v < kVectors; v++) least[v] = median[v] | one;
        for (int64_t k = 0; k < n_rows; k++)
          for (int v = 0; v < kVectors; v++) {
            V x;
            load_vector(x, rows[k] + i + v * kLanes);
            below[v] -= (V)(x < least[v]);
          }
        for (int v = 0; v < kVectors; v++) median[v] = below[v] <= half ? least[v] : median[v];
      }
      memcpy(out + i, median, (n - i < kStep ? n - i : kStep) * sizeof(Key));
    }
  }
};

template <class Key, class T>
static Key key_of(T x) {
  if constexpr (DTypeOf<T>::value == FLOAT) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return float_key(bits);
  } else {
    return (Key)x;
  }
}

template <class T, class Key>
static T value_of(Key key) {
  if constexpr (DTypeOf<T>::value == FLOAT) {
    const uint32_t bits = key_float(key);
    T x;
    memcpy(&x, &bits, 4);
    return x;
  } else {
    return (T)key;
  }
}

// Calls f(offset of the output row, pointers to the rows under the window) for each row of an image.
template <class Key, class T, class Convert, class F>
static void each_row(const T *in, const Grid &g, const Window &window, Scratch &scratch, const Convert &convert,
                     const F &f) {
  const int64_t n = g.row();
  RowRing<Key> ring(g, window, CLAMP, 0, kAtOnce / sizeof(Key), scratch, 0);
  const Key **rows = scratch.array<const Key *>(window.h * window.w, 1);
  for (int64_t y = 0; y < g.h; y++) {
    ring.advance(y, [&](Key *to, int64_t row) { convert(to, in + row * n, n); });
    for (int64_t i = 0; i < window.h; i++)
      for (int64_t j = 0; j < window.w; j++) rows[i * window.w + j] = ring.at(y, i, j);
    f(y * n, rows);
  }
}

// The function that takes the median of n_rows rows; null if there is none.
template <class T>
using Select = void (*)(T *out, const T *const *rows, int64_t n);
template <class T>
static Select<T> select_rows(int64_t n_rows) {
  switch (n_rows) {
#define SELECT(N) \
  case N:         \
    return by_vectors<SelectRows<N, T>>;
    SELECT(3) SELECT(5) SELECT(9) SELECT(15) SELECT(25)
#undef SELECT
  }
  return nullptr;
}

template <class Key, class T>
static void search(T *out, const T *in, const Grid &g, const Window &window, Scratch &scratch) {
  const int64_t n = g.row();
  Key *found = scratch.array<Key>(n, 2);
  each_row<Key>(
      in, g, window, scratch,
      [](Key *to, const T *from, int64_t n) {
        for (int64_t i = 0; i < n; i++) to[i] = key_of<Key>(from[i]);
      },
      [&](int64_t at, const Key **rows) {
        by_vectors<SearchRows<Key>>(found, rows, window.h * window.w, n, (int)sizeof(T) * 8);
        for (int64_t i = 0; i < n; i++) out[at + i] = value_of<T>(found[i]);
      });
}

template <class T>
static void median(T *out, const T *in, const Grid &g, const Window &window, Scratch &scratch) {
  if (window.h * window.w == 1) {
    memcpy(out, in, g.slice() * sizeof(T));
    return;
  }
  if (const Select<T> select = select_rows<T>(window.h * window.w))
    return each_row<T>(
        in, g, window, scratch, [](T *to, const T *from, int64_t n) { memcpy(to, from, n * sizeof(T)); },
        [&](int64_t at, const T **rows) { select(out + at, rows, g.row()); });
  if constexpr (DTypeOf<T>::value == FLOAT)
    search<uint32_t>(out, in, g, window, scratch);
  else if (sizeof(T) == 1 && window.h * window.w < 256)
    search<uint8_t>(out, in, g, window, scratch);
  else
    search<uint16_t>(out, in, g, window, scratch);
}

static void run(const Tensor *out, const Tensor *in, const MedianArgs &a, Scratch &scratch) {
  const Grid g(*in, a.n_outer, 2);
  if (in->volume() == 0) return;
  const Window window{a.size[0], a.size[1], a.size[0] / 2, a.size[1] / 2};
  for_types<uint8_t, uint16_t, float>(in->dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t p = 0; p < g.outer; p++)
      median(out->as<T>() + p * g.slice(), in->as<T>() + p * g.slice(), g, window, scratch);
  });
}

EXPORT_KERNEL(median, MedianArgs, run)
