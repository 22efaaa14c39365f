// SPDX-License-Identifier: Apache-2.0
#include "color/linear.h"

#include "color/look_up.h"
#include "core/stream.h"

template <class Out, class In>
CLONES static void convert(Out *__restrict out, const In *__restrict in, int64_t n, float mul, float add) {
  for (int64_t i = 0; i < n; i++) out[i] = linear<Out>(in[i], mul, add);
}

constexpr int64_t kWorthATable = 2048;  // elements; below, filling the table costs more than it saves

static void run(const Tensor *out, const Tensor *in, const LinearArgs &a, Scratch &scratch) {
  if (out->dtype == UINT8 && in->dtype == UINT8 && in->volume() >= kWorthATable && can_look_up()) {
    uint8_t all[256], table[256];
    for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
    convert(table, all, 256, a.mul, a.add);
    look_up(out->as<uint8_t>(), in->as<uint8_t>(), in->volume(), table);
    return;
  }
  for_types<uint8_t, int16_t, int32_t, float>(out->dtype, [&](auto o) {
    for_types<uint8_t, int16_t, int32_t, float>(in->dtype, [&](auto i) {
      using Out = decltype(o);
      const auto *x = in->as<decltype(i)>();
      write_blocks(out->as<Out>(), in->volume(), scratch,
                   [&](Out *to, int64_t first, int64_t n) { convert(to, x + first, n, a.mul, a.add); });
    });
  });
}

EXPORT_KERNEL(linear, LinearArgs, run)
