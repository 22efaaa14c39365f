// SPDX-License-Identifier: Apache-2.0
#include "color/color_matrix.h"

#include "color/planes.h"
#include "core/kernel.h"

template <class Out, class In>
CLONES static void convert(Out *__restrict out, const In *__restrict in, int64_t n_pixels,
                           const ColorMatrixArgs &args) {
  const ColorMatrixArgs a = args;  // a copy of its own cannot be changed by writing to `out`
  Planes<In> from;
  Planes<Out> to;
  for_blocks(
      n_pixels, [&](int64_t first, int n) __attribute__((always_inline)) {
        from.load(in + 3 * first, n);
        for (int i = 0; i < n; i++) {
          to.a[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix, a.offset[0]);
          to.b[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 3, a.offset[1]);
          to.c[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 6, a.offset[2]);
        }
        to.store(out + 3 * first, n);
      });
}

static void run(const Tensor *out, const Tensor *in, const ColorMatrixArgs &a, Scratch &) {
  for_types<uint8_t, int16_t, int32_t, half, float>(out->dtype, [&](auto o) {
    for_types<uint8_t, int16_t, int32_t, half, float>(
        in->dtype, [&](auto i) { convert(out->as<decltype(o)>(), in->as<decltype(i)>(), in->volume() / 3, a); });
  });
}

EXPORT_KERNEL(color_matrix, ColorMatrixArgs, run)
