// SPDX-License-Identifier: Apache-2.0
// The content of one file. out[0] is no memory for the content, which nobody knows the size of before, but two int64:
// the address of a block from the memory pool and the number of bytes in it. The block is the caller's.
#pragma once
#include "core/tensor.h"

struct WholeFileArgs {
  int64_t root;  // address of the folder's name that a relative path is in, ending in '/' unless empty; null-terminated
  int64_t path;  // address of the path, null-terminated
};
