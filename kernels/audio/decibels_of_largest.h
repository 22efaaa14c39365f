// SPDX-License-Identifier: Apache-2.0
// Decibels relative to the largest element of the sample.
#pragma once
#include "audio/decibels.h"

struct DecibelsOfLargestArgs {
  float multiplier;
  float smallest;  // ratio
};
