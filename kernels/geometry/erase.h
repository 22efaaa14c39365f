// SPDX-License-Identifier: Apache-2.0
// Boxes of a sample are filled.
#pragma once
#include "core/convert.h"

struct EraseArgs {
  const int64_t *begin;  // of each region along every axis; the window that the output is begins at 0
  const int64_t *end;
  const float *fill;
  int32_t regions;
  int32_t channels;  // the axis that counts channels for `fill`; -1: one value for all
};
