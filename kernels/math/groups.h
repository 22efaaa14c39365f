// SPDX-License-Identifier: Apache-2.0
// A tensor reduced along some axes, as consecutive blocks of rows x period elements: element i of a block belongs to
// parameter first + i % period. Adjacent axes are merged first if all are reduced or all are kept.
#pragma once
#include "core/tensor.h"

struct Groups {
  int64_t rows = 1, period = 1, n_blocks = 1, n_params = 1;
  int n_outer = 0;
  int64_t extent[kMaxDims], param_stride[kMaxDims];  // of the axes around the blocks; a stride of 0 means reduced

  // Elements per parameter.
  int64_t count() const {
    int64_t n = rows * n_blocks * period;
    return n_params ? n / n_params : 0;
  }

  Groups(const Tensor &x, const uint8_t *reduced) {
    int n = 0;
    bool is_reduced[kMaxDims];
    for (int d = 0; d < x.ndim; d++) {
      if (!reduced[d]) n_params *= x.shape[d];
      if (x.shape[d] == 1) continue;
      if (n && is_reduced[n - 1] == (reduced[d] != 0)) {
        extent[n - 1] *= x.shape[d];
      } else {
        extent[n] = x.shape[d];
        is_reduced[n++] = reduced[d] != 0;
      }
    }
    if (n && !is_reduced[n - 1]) period = extent[--n];
    if (n && is_reduced[n - 1]) rows = extent[--n];
    n_outer = n;
    int64_t stride = period;
    for (int d = n - 1; d >= 0; d--) {
      n_blocks *= extent[d];
      param_stride[d] = is_reduced[d] ? 0 : stride;
      if (!is_reduced[d]) stride *= extent[d];
    }
  }

  // Calls f(offset of the block in elements, its first parameter).
  template <class F>
  void for_blocks(F f) const {
    int64_t at[kMaxDims] = {}, param = 0;
    for (int64_t b = 0; b < n_blocks; b++) {
      f(b * rows * period, param);
      for (int d = n_outer - 1; d >= 0; d--) {
        param += param_stride[d];
        if (++at[d] < extent[d]) break;
        at[d] = 0;
        param -= param_stride[d] * extent[d];
      }
    }
  }
};
