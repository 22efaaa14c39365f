// SPDX-License-Identifier: Apache-2.0
#include "color/color_matrix.h"

#include "color/planes.h"
#include "core/kernel.h"

// A block of pixels passes through planes of floats: a loop for each input type and one for each output type, instead
// of one for each pair.
template <class In>
CLONES static void load(Planes<float> &to, const void *in, int64_t first, int n) {
  const In *__restrict x = static_cast<const In *>(in) + 3 * first;
  for (int i = 0; i < n; i++) to.a[i] = (float)x[3 * i], to.b[i] = (float)x[3 * i + 1], to.c[i] = (float)x[3 * i + 2];
}

template <class Out>
CLONES static void store(void *out, const Planes<float> &from, int64_t first, int n, const ColorMatrixArgs &args) {
  const ColorMatrixArgs a = args;  // a copy of its own cannot be changed by writing to `out`
  Planes<Out> to;
  for (int i = 0; i < n; i++) {
    to.a[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix, a.offset[0]);
    to.b[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 3, a.offset[1]);
    to.c[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 6, a.offset[2]);
  }
  to.store(static_cast<Out *>(out) + 3 * first, n);
}

static void run(const Tensor *out, const Tensor *in, const ColorMatrixArgs &a, Scratch &) {
  decltype(&load<float>) load_block = nullptr;
  decltype(&store<float>) store_block = nullptr;
  for_types<uint8_t, int16_t, int32_t, half, float>(in->dtype, [&](auto i) { load_block = load<decltype(i)>; });
  for_types<uint8_t, int16_t, int32_t, half, float>(out->dtype, [&](auto o) { store_block = store<decltype(o)>; });
  Planes<float> block;
  for_blocks(in->volume() / 3, [&](int64_t first, int n) {
    load_block(block, in->data, first, n);
    store_block(out->data, block, first, n, a);
  });
}

EXPORT_KERNEL(color_matrix, ColorMatrixArgs, run)
