// SPDX-License-Identifier: Apache-2.0
// Fills parts of a dense output with one value, or with one value per channel.
#pragma once
#include <algorithm>
#include <cstring>

#include "core/tensor.h"

// Repeats the first `period` bytes of out until there are `bytes`.
inline void repeat(char *out, int64_t period, int64_t bytes) {
  for (int64_t done = period; done < bytes; done *= 2) std::memcpy(out + done, out, std::min(done, bytes - done));
}

struct Fill {
  int ndim, channels;        // number of axes; channel axis, -1: none
  int64_t extent[kMaxDims];  // of the output
  int64_t step[kMaxDims];    // elements per index
  int64_t size;              // bytes of an element
  char *values;              // one per channel, in the output's type

  void of(const Tensor *out, int channel_axis) {
    ndim = out->ndim, channels = channel_axis, size = item_size(out->dtype);
    int64_t n = 1;
    for (int d = ndim - 1; d >= 0; d--) extent[d] = out->shape[d], step[d] = n, n *= extent[d];
  }
  int64_t count() const { return channels < 0 ? 1 : extent[channels]; }

  // Fills [from, to) of axis d, with all axes after it. `out`: address of index 0 of axis d; c: the channel, if the
  // channel axis comes before d.
  void range(char *out, int d, int64_t from, int64_t to, int64_t c) const {
    if (to <= from || d >= kMaxDims) return;
    out += from * step[d] * size;
    const int64_t bytes = (to - from) * step[d] * size;
    if (channels < d) {
      std::memcpy(out, values + c * size, size);
      repeat(out, size, bytes);
    } else if (channels == d) {
      for (int64_t i = from; i < to; i++, out += step[d] * size) {
        std::memcpy(out, values + i * size, size);
        repeat(out, size, step[d] * size);
      }
    } else if (step[d] > 0 && d + 1 < kMaxDims) {
      range(out, d + 1, 0, extent[d + 1], c);
      repeat(out, step[d] * size, bytes);
    }
  }
};
