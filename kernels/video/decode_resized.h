// SPDX-License-Identifier: Apache-2.0
// Decodes and resizes frames of an encoded video one by one; only the needed part of each picture is converted.
#pragma once
#include "core/tensor.h"

// The fields of DecodeVideoArgs and those of ResampleArgs, for pictures of height and width.
struct DecodeResizedArgs {
  int64_t index;
  const int32_t *frames;
  double roi_start[2];
  double roi_end[2];
  int64_t in_size[2];
  int64_t out_size[2];
  int64_t in_origin[2];  // the window of pictures to read
  int64_t window[2];     // size of the window
  int64_t out_origin[2];
  uint8_t fill[4];
  int32_t as_ycbcr;
  int32_t min_filter, mag_filter;
  int32_t antialias;
  int32_t rule;
};
