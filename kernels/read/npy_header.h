// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file: https://numpy.org/neps/nep-0001-npy-format.html.
#pragma once
#include "core/tensor.h"

struct NpyHeader {
  int dtype, ndim;
  bool columns_first;  // Fortran order
  int64_t shape[kMaxDims];
  int64_t bytes;  // of the array
};

constexpr int64_t kNpyPrefix = 12;

// The total size of the magic and the header, from the first kNpyPrefix bytes of the file, or fewer if it is shorter;
// `text_begin` receives the offset of the header's text.
int64_t npy_header_size(const char *file, int64_t n, int64_t &text_begin);
NpyHeader npy_header(const char *text, int64_t n);
