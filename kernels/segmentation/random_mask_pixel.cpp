// SPDX-License-Identifier: Apache-2.0
#include "segmentation/random_mask_pixel.h"

#include <algorithm>
#include <limits>

#include "core/kernel.h"
#include "random/draws.h"

namespace {

constexpr int64_t kBlock = 4096;  // elements counted at once, so that a count fits in 16 bits

// The foreground: values in [low, high]. The limits have the mask's type, so that values are compared exactly.
template <class T>
struct Foreground {
  T low, high;
  bool is_empty;
};

template <class T>
Foreground<T> foreground_of(const RandomMaskPixelArgs &a) {
  typedef std::numeric_limits<T> Limits;
  if constexpr (std::is_floating_point_v<T>) {
    if (a.by_value) return {(T)a.value, (T)a.value, false};
    return {std::nextafter(a.threshold, Limits::infinity()), Limits::infinity(), a.threshold == Limits::infinity()};
  } else {
    const double lowest = (double)Limits::lowest(), highest = (double)Limits::max();
    if (a.by_value) return {(T)a.value, (T)a.value, a.value < lowest || a.value > highest};
    const double low = std::floor((double)a.threshold) + 1;
    // The largest 64-bit integers are not representable as doubles: `highest` is larger by one.
    if (!(low < highest || low <= highest && sizeof(T) < 8)) return {0, 0, true};
    return {low <= lowest ? Limits::lowest() : (T)low, Limits::max(), false};
  }
}

template <class T>
CLONES int64_t count(const T *__restrict x, int64_t n, T low, T high) {
  int64_t total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    uint16_t found = 0;
    for (int64_t i = begin; i < end; i++) found += (uint16_t)(x[i] >= low && x[i] <= high);
    total += found;
  }
  return total;
}

// The position of element k of the foreground.
template <class T>
int64_t find(const T *x, int64_t n, const Foreground<T> &f, int64_t k) {
  int64_t begin = 0;
  for (; begin + kBlock < n; begin += kBlock) {
    const int64_t found = count(x + begin, kBlock, f.low, f.high);
    if (k < found) break;
    k -= found;
  }
  for (;; begin++)
    if (x[begin] >= f.low && x[begin] <= f.high && k-- == 0) return begin;
}

void run(const Tensor *out, const Tensor *in, const RandomMaskPixelArgs &a, Scratch &) {
  const int64_t n = in->volume();
  if (n == 0) fail("the mask is empty, so that there is no pixel to choose");
  Draws draws(a.key, a.position, a.epoch);
  int64_t place = -1;
  if (a.foreground && (a.by_value || a.threshold == a.threshold))
    for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float>(
        in->dtype == BOOL ? UINT8 : in->dtype, [&](auto t) {
          typedef decltype(t) T;
          const Foreground<T> f = foreground_of<T>(a);
          const T *x = in->as<T>();
          const int64_t found = f.is_empty ? 0 : count(x, n, f.low, f.high);
          if (found) place = find(x, n, f, draws.below(found));
        });
  if (place < 0) place = draws.below(n);
  int64_t *at = out->as<int64_t>();
  for (int d = in->ndim - 1; d >= 0; d--) {
    at[d] = place % in->shape[d];
    place /= in->shape[d];
  }
}

}  // namespace

EXPORT_KERNEL(random_mask_pixel, RandomMaskPixelArgs, run)
