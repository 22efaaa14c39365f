// SPDX-License-Identifier: Apache-2.0
// Resampling of uint8 to the very pixels of Pillow and of PyTorch, whose algorithms are of one kind: along rows first
// (Pillow 13: sometimes last), rounded to uint8, then along columns. Weights are evaluated in double precision for the
// inputs inside of the image, divided by their sum, and rounded to integers: times 2^22 by Pillow, by PyTorch times the
// largest power of two with which the largest weight of the axis is below 2^15. Sums are exact, and rounded half up.
// Without antialiasing, which Pillow has always, PyTorch's filters are not stretched, and repeat the border.
#pragma once
#include "core/kernel.h"
#include "resample/taps.h"

// `in` begins with the window's first pixel; its rows are `pitch` bytes apart. `out` is dense.
void exact_plane(uint8_t *out, const uint8_t *in, int64_t pitch, Taps &rows, Taps &columns, int channels,
                 Scratch &scratch);
