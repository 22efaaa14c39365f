// SPDX-License-Identifier: Apache-2.0
#include "math/moments.h"

#include <algorithm>

#include "core/kernel.h"
#include "math/sums.h"

static void run(const Tensor *out, const Tensor *in, const MomentsArgs &a, Scratch &scratch) {
  Groups g(*in, a.reduced);
  double *counts = out->as<double>(), *mean = counts + g.n_params, *squares = mean + g.n_params;
  double *lanes = scratch.array<double>(2 * n_lanes(g), 0), *center = scratch.array<double>(g.n_params, 1);
  double count = (double)g.count();
  std::fill_n(counts, g.n_params, count);
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float>(in->dtype, [&](auto i) {
    const auto *x = in->as<decltype(i)>();
    sums(mean, x, g, lanes);
    for (int64_t p = 0; p < g.n_params; p++) {
      mean[p] = count ? mean[p] / count : 0;
      center[p] = a.has_center ? a.center : mean[p];
    }
    square_sums(squares, center, x, g, lanes);
  });
}

EXPORT_KERNEL(moments, MomentsArgs, run)
