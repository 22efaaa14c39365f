// SPDX-License-Identifier: Apache-2.0
// Decodes a window of an encoded image into HWC pixels.
#pragma once
#include "core/tensor.h"

// The numbers are those of types.DALIImageType.
enum ImageType : int32_t { RGB, BGR, GRAY, YCBCR, ANY_DATA };

// format, height and width come from plan_images; the decoder verifies them. y and x are the window's origin in the
// oriented (and, after scaling, smaller) image; its extent is the output's shape.
struct DecodeArgs {
  int64_t y;
  int64_t x;
  int32_t format;
  int32_t height;
  int32_t width;
  int32_t orientation;
  int32_t output_type;
  int32_t scale_denom;
  int32_t fancy_upsampling;
  int32_t fast_idct;
};
