// SPDX-License-Identifier: Apache-2.0
// Images in a FITS file.
#pragma once
#include "core/tensor.h"

struct FitsArgs {
  const int64_t *hdus;    // which images, counted from 1: output k is number hdus[k]
  const int64_t *dtypes;  // the type that each has to have, -1 for any
  int32_t n_outputs;
};
