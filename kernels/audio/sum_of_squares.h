// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// Of float32, summed in float64, in an order that depends only on n.
double sum_of_squares(const float *x, int64_t n);
