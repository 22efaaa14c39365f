// SPDX-License-Identifier: Apache-2.0
#include "color/color_matrix.h"

#include <type_traits>

#include "color/planes.h"
#include "core/kernel.h"

// Blocks of pixels are converted via planes: uint8 planes for uint8 input, else float planes. This needs one loop per
// input type and two per output type, instead of one per pair.
template <class In>
using InPlanes = Planes<std::conditional_t<std::is_same_v<In, uint8_t>, uint8_t, float>>;

template <class In>
CLONES static void load(void *planes, const void *in, int64_t first, int n) {
  static_cast<InPlanes<In> *>(planes)->load(static_cast<const In *>(in) + 3 * first, n);
}

template <class Out, class Block>
CLONES static void store(void *out, const void *planes, int64_t first, int n, const ColorMatrixArgs &args) {
  const ColorMatrixArgs a = args;  // a local copy, which writes to `out` cannot alias
  const Block &from = *static_cast<const Block *>(planes);
  Planes<Out> to;
  for (int i = 0; i < n; i++) {
    to.a[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix, a.offset[0]);
    to.b[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 3, a.offset[1]);
    to.c[i] = color_matrix_row<Out>(from.a[i], from.b[i], from.c[i], a.matrix + 6, a.offset[2]);
  }
  to.store(static_cast<Out *>(out) + 3 * first, n);
}

static void run(const Tensor *out, const Tensor *in, const ColorMatrixArgs &a, Scratch &) {
  void (*load_block)(void *, const void *, int64_t, int) = nullptr;
  void (*store_block)(void *, const void *, int64_t, int, const ColorMatrixArgs &) = nullptr;
  for_types<uint8_t, int16_t, int32_t, half, float>(in->dtype, [&](auto i) { load_block = load<decltype(i)>; });
  for_types<uint8_t, int16_t, int32_t, half, float>(out->dtype, [&](auto o) {
    typedef decltype(o) Out;
    store_block = in->dtype == UINT8 ? store<Out, InPlanes<uint8_t>> : store<Out, InPlanes<float>>;
  });
  Planes<float> block;
  for_blocks(in->volume() / 3, [&](int64_t first, int n) {
    load_block(&block, in->data, first, n);
    store_block(out->data, &block, first, n, a);
  });
}

EXPORT_KERNEL(color_matrix, ColorMatrixArgs, run)
