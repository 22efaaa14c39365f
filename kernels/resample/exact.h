// SPDX-License-Identifier: Apache-2.0
// Resampling of uint8 with the same pixels as Pillow and PyTorch, which use similar algorithms: along rows first
// (Pillow 13: sometimes last), rounded to uint8, then along columns. Weights are computed in double precision for
// inputs inside the image, divided by their sum, and rounded to integers: times 2^22 by Pillow, times the largest power
// of two for which the axis' largest weight is below 2^15 by PyTorch. Sums are exact, and rounded half up. Without
// antialiasing (Pillow always has it), PyTorch's filters are not stretched, and the border is repeated.
#pragma once
#include "core/kernel.h"
#include "resample/taps.h"

// `in`: first pixel of the window; its rows are `pitch` bytes apart. `out` is dense.
void exact_plane(uint8_t *out, const uint8_t *in, int64_t pitch, Taps &rows, Taps &columns, int channels,
                 Scratch &scratch);
