// SPDX-License-Identifier: Apache-2.0
// Axes across which the stride is constant are merged; contiguous elements are copied as a block.
#include "generic/subscript.h"

#include <cstring>

#include "core/kernel.h"

namespace {

struct Walk {
  int ndim = 0;
  int64_t extent[kMaxDims + 1], step[kMaxDims + 1];  // steps in bytes
  int64_t bytes;                                     // of the innermost block

  template <int kBytes>
  static CLONES void gather(char *out, const char *in, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i++) std::memcpy(out + i * kBytes, in + i * step, kBytes);
  }

  char *visit(char *out, const char *in, int d) const {
    if (d == ndim) {
      std::memcpy(out, in, bytes);
      return out + bytes;
    }
    if (d == ndim - 1) {
      const int64_t n = extent[d], s = step[d];
      switch (bytes) {
        case 1:
          gather<1>(out, in, n, s);
          break;
        case 2:
          gather<2>(out, in, n, s);
          break;
        case 3:
          gather<3>(out, in, n, s);
          break;
        case 4:
          gather<4>(out, in, n, s);
          break;
        case 8:
          gather<8>(out, in, n, s);
          break;
        default:
          for (int64_t i = 0; i < n; i++) std::memcpy(out + i * bytes, in + i * s, bytes);
      }
      return out + n * bytes;
    }
    for (int64_t i = 0; i < extent[d]; i++) out = visit(out, in + i * step[d], d + 1);
    return out;
  }
};

}  // namespace

static void run(const Tensor *out, const Tensor *in, const SubscriptArgs &a, Scratch &) {
  if (out->volume() == 0) return;
  const int64_t size = item_size(in->dtype);
  Walk w;
  for (int d = 0; d < out->ndim; d++) {
    const int64_t n = out->shape[d], s = a.step[d] * size;
    if (n == 1) continue;
    if (w.ndim && w.step[w.ndim - 1] == s * n) {  // continues the stride of the axis before
      w.extent[w.ndim - 1] *= n, w.step[w.ndim - 1] = s;
      continue;
    }
    w.extent[w.ndim] = n, w.step[w.ndim++] = s;
  }
  w.bytes = size;
  if (w.ndim && w.step[w.ndim - 1] == size) w.bytes = size * w.extent[--w.ndim];
  w.visit(out->as<char>(), in->as<char>() + a.base * size, 0);
}

EXPORT_KERNEL(subscript, SubscriptArgs, run)
