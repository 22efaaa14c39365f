// SPDX-License-Identifier: Apache-2.0
// Windows of a signal, as pairs of samples times the window function.
#pragma once
#include "audio/gpu_fft.h"
#include "audio/spectrogram.h"

// LENGTH: the window length if known at compile time, else 0.
template <int LENGTH>
struct Windows {
  const float *x, *window;
  int64_t n, first;
  int32_t step, length;
  bool reflect, by_pairs;
  int64_t t = 0;  // the first of the windows taken at a time

  DEVICE Windows(const SpectrogramArgs &a, const Tensor &in)
      : x(in.as<float>()),
        window(a.window),
        n(volume_of(in)),
        first(a.first),
        step(a.window_step),
        length(LENGTH ? LENGTH : a.window_length),
        reflect(a.reflect),
        by_pairs(LENGTH && LENGTH % 2 == 0 && ((unsigned long long)a.window & 7) == 0) {}

  // to[k] = windowed samples 2 i and 2 i + 1, i = j + k * m, of window w. False unless all are in the signal and
  // aligned.
  template <int N>
  DEVICE bool all(float2 (&to)[N], int w, int j, int m) const {
    const int64_t begin = first + (t + w) * step;
    const float *const from = x + begin + 2 * j, *const by = window + 2 * j;
    if (!by_pairs || begin < 0 || begin + length > n || ((unsigned long long)from & 7)) return false;
    float2 values[N], factors[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
      if (2 * k * m >= LENGTH) continue;
      const int at = 2 * (j + k * m) < LENGTH ? 2 * k * m : 0;  // any readable address
      values[k] = load((const float2 *)(from + at)), factors[k] = load((const float2 *)(by + at));
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
      const bool is_inside = 2 * k * m < LENGTH && 2 * (j + k * m) < LENGTH;
      to[k].x = is_inside ? values[k].x * factors[k].x : 0.0f;
      to[k].y = is_inside ? values[k].y * factors[k].y : 0.0f;
    }
    return true;
  }
  DEVICE float2 one(int w, int i) const {
    const int64_t at = first + (t + w) * step + 2 * i;
    return make_float2(sample(at, 2 * i), sample(at + 1, 2 * i + 1));
  }
  // Prefetches the windows that are `by` windows ahead.
  DEVICE void prefetch(int windows, int by) const {
#ifdef __CUDA_ARCH__
    const int64_t begin = first + (t + by) * step + (int64_t)threadIdx.x * 32;
    if (begin >= 0 && begin < n && threadIdx.x * 32 < windows * step + length)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(x + begin));
#endif
  }

 private:
  // Sample i of a window, at `at` of the signal or beyond its ends.
  DEVICE float sample(int64_t at, int i) const {
    if (i >= length) return 0.0f;
    const bool is_inside = at >= 0 && at < n;
    if (!is_inside && !reflect) return 0.0f;
    return load(x + (is_inside ? at : mirrored(at, n))) * load(window + i);
  }
};
