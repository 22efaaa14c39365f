// SPDX-License-Identifier: Apache-2.0
// Fills boxes of a sample.
#pragma once
#include "core/convert.h"

struct EraseArgs {
  const int64_t *begin;  // of each region along every axis; 0 is the begin of the output's window
  const int64_t *end;
  const float *fill;
  int32_t regions;
  int32_t channels;  // channel axis of `fill`; -1: one value for all
};
