// SPDX-License-Identifier: Apache-2.0
// What the reading of files needs for a batch: columns in, rows out.
#include "core/kernel.h"
#include "core/native_time.h"
#include "read/whole_file.h"

// For the n files at `index`, whose names begin at `begins` in `text`: the arguments of the kernel that reads them, the
// rows `encoded` that it fills and finds through `out`, and a label for each of them with its row.
EXPORT void name_files(const int64_t *index, int64_t n, const char *root, const char *text, const int64_t *begins,
                       const int32_t *labels, WholeFileArgs *args, Tensor *encoded, Tensor *out, int32_t *label,
                       Tensor *label_rows) {
  NativeTime time;
  for (int64_t i = 0; i < n; i++) {
    args[i] = {(int64_t)root, (int64_t)(text + begins[index[i]]), 0, 0};
    encoded[i] = Tensor{};
    encoded[i].ndim = 1, encoded[i].dtype = UINT8;
    out[i].data = &encoded[i];
    label[i] = labels[index[i]];
    label_rows[i] = Tensor{};
    label_rows[i].data = &label[i], label_rows[i].shape[0] = 1;
    label_rows[i].ndim = 1, label_rows[i].dtype = INT32;
  }
}
EXPORT_SHORT(name_files)
