// SPDX-License-Identifier: Apache-2.0
// Turns NumPy arrays into batch rows and finds where samples lie, without a Python call per sample.
#include "core/kernel.h"

namespace {

constexpr int32_t kContiguous = 0x1, kAligned = 0x100;

// What follows the object head in NumPy's PyArrayObject_fields, which is part of its ABI.
struct Array {
  char *data;
  int nd;
  const int64_t *dimensions, *strides;
  const void *base, *descr;
  int flags;
};

}  // namespace

// Fills `rows` for n objects, and their shapes (n, ndim) if `shapes` is not null. Returns 1 if all are exactly of the
// Python type `type`, contiguous, aligned, of `ndim` dimensions and with the dtype object `descr`; 0 otherwise. `head`
// is the size of a bare Python object; its last field is the type.
EXPORT int32_t rows_of_arrays(const char *const *objects, int64_t n, int64_t head, const void *type, const void *descr,
                              int32_t ndim, int32_t dtype, Tensor *rows, int64_t *shapes) {
  for (int64_t i = 0; i < n; i++) {
    const Array &a = *(const Array *)(objects[i] + head);
    if (*(const void *const *)(objects[i] + head - sizeof(void *)) != type) return 0;
    if (a.nd != ndim || a.descr != descr || (a.flags & (kContiguous | kAligned)) != (kContiguous | kAligned)) return 0;
    Tensor &row = rows[i];
    row.data = a.data, row.ndim = ndim, row.dtype = dtype;
    for (int d = 0; d < kMaxDims; d++) row.shape[d] = d < ndim ? a.dimensions[d] : 0;
    for (int d = 0; d < ndim && shapes; d++) *shapes++ = a.dimensions[d];
  }
  return 1;
}
EXPORT_SHORT(rows_of_arrays)

// Returns the bytes from the first sample to the end if samples are contiguous, each `align`-byte aligned, as
// lay_out_batch places them, and fills `rows` with offsets from the first; else -1.
EXPORT int64_t rows_in_block(const Tensor *from, int64_t n, int64_t align, Tensor *rows) {
  int64_t end = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t place = (const char *)from[i].data - (const char *)from[0].data;
    if (place != end) return -1;
    rows[i] = from[i], rows[i].data = (void *)place;
    end += (from[i].volume() * item_size(from[i].dtype) + align - 1) / align * align;
  }
  return end;
}
EXPORT_SHORT(rows_in_block)
