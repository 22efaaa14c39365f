// SPDX-License-Identifier: Apache-2.0
// Images of a FITS file.
#pragma once
#include "core/tensor.h"

struct FitsArgs {
  const int64_t *hdus;    // indices from 1: output k is HDU number hdus[k]
  const int64_t *dtypes;  // expected type of each, -1 for any
  int32_t n_outputs;
};
