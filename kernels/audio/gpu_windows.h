// SPDX-License-Identifier: Apache-2.0
// Windows of a signal, as pairs of samples times the window function.
#pragma once
#include "audio/gpu_fft.h"
#include "audio/spectrogram.h"

struct Windows {
  const float *x, *window;
  int64_t n, first;
  int32_t step, length;
  bool reflect, by_pairs;  // by_pairs: window function and length suit it

  DEVICE Windows(const SpectrogramArgs &a, const Tensor &in)
      : x(in.as<float>()),
        window(a.window),
        n(volume_of(in)),
        first(a.first),
        step(a.window_step),
        length(a.window_length),
        reflect(a.reflect),
        by_pairs(a.window_length % 2 == 0 && ((unsigned long long)a.window & 7) == 0) {}

  // x[k] = samples 2 i and 2 i + 1, i = j + k * m, of window t.
  template <int N>
  DEVICE void fetch(float2 (&to)[N], int64_t t, int j, int m) const {
    const int64_t begin = first + t * step;
    const float *const from = x + begin;
    if (begin >= 0 && begin + length <= n) {
      if (by_pairs && ((unsigned long long)from & 7) == 0) {
#pragma unroll
        for (int k = 0; k < N; k++) {
          const int i = 2 * (j + k * m);
          to[k] = make_float2(0.0f, 0.0f);
          if (i < length) {
            const float2 w = load((const float2 *)(window + i)), v = load((const float2 *)(from + i));
            to[k] = make_float2(v.x * w.x, v.y * w.y);
          }
        }
      } else {
#pragma unroll
        for (int k = 0; k < N; k++) {
          const int i = 2 * (j + k * m);
          to[k].x = i < length ? load(from + i) * load(window + i) : 0.0f;
          to[k].y = i + 1 < length ? load(from + i + 1) * load(window + i + 1) : 0.0f;
        }
      }
    } else {
#pragma unroll
      for (int k = 0; k < N; k++) {
        const int i = 2 * (j + k * m);
        to[k] = make_float2(at_border(begin + i, i), at_border(begin + i + 1, i + 1));
      }
    }
  }
  // Sample i of a window, which lies at `at` of the signal or beyond its ends.
  DEVICE float at_border(int64_t at, int i) const {
    if (i >= length) return 0.0f;
    const bool is_inside = at >= 0 && at < n;
    if (!is_inside && !reflect) return 0.0f;
    return load(x + (is_inside ? at : mirrored(at, n))) * load(window + i);
  }
};
