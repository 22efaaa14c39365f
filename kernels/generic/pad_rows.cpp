// SPDX-License-Identifier: Apache-2.0
// Copies samples of different shapes into one padded array, to the beginning of each axis.
#include <cstring>

#include "core/kernel.h"
#include "core/native_time.h"

namespace {

void fill_bytes(char *out, int64_t bytes, const char *value, int64_t item) {
  if (bytes <= 0) return;
  std::memcpy(out, value, item);
  for (int64_t done = item; done < bytes; done *= 2)
    std::memcpy(out + done, out, done < bytes - done ? done : bytes - done);
}

void place(char *out, const int64_t *to, const char *in, const int64_t *from, int ndim, const char *value,
           int64_t item) {
  if (!ndim) {
    std::memcpy(out, in, item);
    return;
  }
  int64_t in_step = item, out_step = item;
  for (int d = 1; d < ndim; d++) in_step *= from[d], out_step *= to[d];
  if (in_step == out_step)
    std::memcpy(out, in, from[0] * in_step);
  else
    for (int64_t i = 0; i < from[0]; i++)
      place(out + i * out_step, to + 1, in + i * in_step, from + 1, ndim - 1, value, item);
  fill_bytes(out + from[0] * out_step, (to[0] - from[0]) * out_step, value, item);
}

}  // namespace

// Copies n samples to `out`, an array of samples of the shape `shape`, which is at least as large as each sample's. The
// rest is filled with `value`.
EXPORT void pad_rows(char *out, const int64_t *shape, const Tensor *in, int64_t n, const char *value) {
  NativeTime time;
  for (int64_t i = 0; i < n; i++) {
    int64_t bytes = item_size(in[i].dtype);
    const int64_t item = bytes;
    for (int d = 0; d < in[i].ndim; d++) bytes *= shape[d];
    if (!in[i].volume())
      fill_bytes(out, bytes, value, item);
    else
      place(out, shape, in[i].as<char>(), in[i].shape, in[i].ndim, value, item);
    out += bytes;
  }
}
EXPORT_LONG(pad_rows)
