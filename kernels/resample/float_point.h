// SPDX-License-Identifier: Apache-2.0
// Images of all other types: rows are combined into a row of floats, which is then resampled along the row.
#pragma once
#include <cstdint>

#include "resample/taps.h"

// row[i] = sum of weights[k] * in[k * pitch + i]
template <class In>
void combine_rows(float *row, const In *in, int64_t pitch, const float *weights, int taps, int64_t n);

// Writes the output row; `row` starts with input sample t.lo and has kFloatMargin readable elements after its end.
constexpr int kFloatMargin = 4;
template <class Out>
void resample_row(Out *out, const float *row, const Taps &t, int64_t channels);

// out[j] = in[t.first[j]], pixels of `channels` elements. For tables with one tap.
template <class T>
void pick_pixels(T *out, const T *in, const Taps &t, int64_t channels);
