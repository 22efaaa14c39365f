// SPDX-License-Identifier: Apache-2.0
#include "coord/coord_transform.h"

#include "core/kernel.h"

// kRows, kColumns: 0 if not known at compile time.
template <int kRows, int kColumns, class Out, class In>
CLONES static void transform(Out *__restrict out, const In *__restrict in, int64_t n, const CoordTransformArgs &args,
                             int n_rows, int n_columns) {
  const CoordTransformArgs a = args;
  const int rows = kRows ? kRows : n_rows, columns = kColumns ? kColumns : n_columns;
  for (int64_t i = 0; i < n; i++) coord_transform(out + i * rows, in + i * columns, a.matrix, a.shift, rows, columns);
}

template <class Out, class In>
static void transform_dims(const Tensor *out, const Tensor *in, const CoordTransformArgs &a) {
  const int rows = (int)out->shape[out->ndim - 1], columns = (int)in->shape[in->ndim - 1];
  if (out->volume() == 0) return;
  auto *f = rows == 2 && columns == 2   ? transform<2, 2, Out, In>
            : rows == 3 && columns == 3 ? transform<3, 3, Out, In>
                                        : transform<0, 0, Out, In>;
  f(out->as<Out>(), in->as<In>(), out->volume() / rows, a, rows, columns);
}

static void run(const Tensor *out, const Tensor *in, const CoordTransformArgs &a, Scratch &) {
  for_types<uint8_t, uint16_t, int16_t, int32_t, float>(in->dtype, [&](auto t) {
    typedef decltype(t) In;
    out->dtype == FLOAT ? transform_dims<float, In>(out, in, a) : transform_dims<In, In>(out, in, a);
  });
}

EXPORT_KERNEL(coord_transform, CoordTransformArgs, run)
