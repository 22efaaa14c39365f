// SPDX-License-Identifier: Apache-2.0
#include "reductions/variance.h"

#include "reductions/reduce.h"

// in[1]: the means, one per parameter or one for all.
static void run(const Tensor *out, const Tensor *in, const VarianceArgs &a, Scratch &scratch) {
  const Groups g(*in, a.reduced);
  double *total = scratch.array<double>(2 * g.n_params), *center = total + g.n_params;
  const bool one = in[1].volume() == 1;
  for (int64_t p = 0; p < g.n_params; p++) center[p] = in[1].as<float>()[one ? 0 : p];
  for_types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float>(
      in->dtype, [&](auto i) { reduce<CenteredSquares<decltype(i)>>(total, *in, g, center, scratch); });
  const int64_t count = g.count();
  for (int64_t p = 0; p < g.n_params; p++) out->as<float>()[p] = finish_variance(total[p], count, a.ddof, a.root);
}

EXPORT_KERNEL(variance, VarianceArgs, run)
