// SPDX-License-Identifier: Apache-2.0
// Connected blobs of equal labels in a mask, and their bounding boxes. Neighbours share a face (4 in an image, 6 in a
// volume). Union-find over runs: He, Ren, Gao, Zhao, Yao, Chao: The connected-component labeling problem (2017).
#pragma once
#include "core/kernel.h"

struct Blob {
  int32_t label;
  int32_t low[kMaxDims], high[kMaxDims];  // first index along each axis, and the one after the last
};

// The labels to find: the listed ones or, if none are listed, all but `background`.
struct Labels {
  const int32_t *listed;  // null if n_listed is 0
  int32_t n_listed, background;
  bool contains(int32_t label) const {
    if (!n_listed) return label != background;
    for (int32_t i = 0; i < n_listed; i++)
      if (listed[i] == label) return true;
    return false;
  }
};

// Finds the blobs of a mask, in the order of their first elements. They are in `scratch` (parts 0 to 2).
Blob *find_blobs(const Tensor &mask, const Labels &labels, Scratch &scratch, int64_t &n_blobs);
