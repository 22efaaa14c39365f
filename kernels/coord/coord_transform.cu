// SPDX-License-Identifier: Apache-2.0
// form: own
#include "coord/coord_transform.h"
#include "core/gpu.h"

// One thread per point; the matrix stays in registers. ROWS, COLUMNS: 0 if samples differ.
template <class Out, class In, int ROWS, int COLUMNS>
DEVICE void coord_transform_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    const int rows = ROWS ? ROWS : (int)out.shape[out.ndim - 1];
    const int columns = COLUMNS ? COLUMNS : (int)in.shape[in.ndim - 1];
    const int64_t n = rows ? volume_of(out) / rows : 0;
    const CoordTransformArgs a = ((const CoordTransformArgs *)l.args[0])[sample];
    const In *from = in.template as<In>();
    Out *to = out.template as<Out>();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      coord_transform(to + i * rows, from + i * columns, a.matrix, a.shift, rows, columns);
  }
}
