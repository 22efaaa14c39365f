// SPDX-License-Identifier: Apache-2.0
#include "audio/fade.h"

#include <algorithm>
#include <cstring>

#include "core/kernel.h"

static void run(const Tensor *out, const Tensor *in, const FadeArgs &a, Scratch &) {
  if (!out->volume()) return;
  const int64_t n = in->shape[0], channels = in->volume() / n;
  const float *x = in->as<float>();
  float *y = out->as<float>();
  const int64_t head = std::min(a.fade_in, n), tail = std::max(head, n - std::min(a.fade_out, n));
  const auto fade = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const float gain = fade_gain(i, n, a);
      for (int64_t c = i * channels; c < (i + 1) * channels; c++) y[c] = x[c] * gain;
    }
  };
  fade(0, head);
  std::memcpy(y + head * channels, x + head * channels, (tail - head) * channels * sizeof *x);
  fade(tail, n);
}

EXPORT_KERNEL(fade, FadeArgs, run)
