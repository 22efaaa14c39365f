// SPDX-License-Identifier: Apache-2.0
#include "color/linear.h"

#include "core/kernel.h"

template <class Out, class In>
CLONES static void convert(Out *__restrict out, const In *__restrict in, int64_t n, float mul, float add) {
  for (int64_t i = 0; i < n; i++) out[i] = linear<Out>(in[i], mul, add);
}

static void run(const Tensor *out, const Tensor *in, const LinearArgs &a, Scratch &) {
  for_types<uint8_t, int16_t, int32_t, float>(out->dtype, [&](auto o) {
    for_types<uint8_t, int16_t, int32_t, float>(
        in->dtype, [&](auto i) { convert(out->as<decltype(o)>(), in->as<decltype(i)>(), in->volume(), a.mul, a.add); });
  });
}

EXPORT_KERNEL(linear, LinearArgs, run)
