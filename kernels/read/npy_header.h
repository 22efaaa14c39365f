// SPDX-License-Identifier: Apache-2.0
// What the header of a .npy file says: https://numpy.org/neps/nep-0001-npy-format.html.
#pragma once
#include "core/tensor.h"

struct NpyHeader {
  int dtype, ndim;
  bool columns_first;  // in Fortran's order
  int64_t shape[kMaxDims];
  int64_t bytes;  // of the array
};

constexpr int64_t kNpyPrefix = 12;

// How many bytes the magic and the header have together, from the first kNpyPrefix bytes of the file, or as many as
// there are; `text_begin` says where its text begins.
int64_t npy_header_size(const char *file, int64_t n, int64_t &text_begin);
NpyHeader npy_header(const char *text, int64_t n);
