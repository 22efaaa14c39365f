// SPDX-License-Identifier: Apache-2.0
// libjpeg's header without clashes with our names, and one set of names for its ABIs (6b on Debian, 8 on Ubuntu).
#pragma once
#include <cstddef>
#include <cstdio>

#include "core/tensor.h"

// libjpeg has types named like our data types.
#define UINT8 JpegUint8
#define UINT16 JpegUint16
#define INT16 JpegInt16
#define INT32 JpegInt32
#include <jpeglib.h>
#undef UINT8
#undef UINT16
#undef INT16
#undef INT32

#if JPEG_LIB_VERSION >= 70
inline int min_dct_size(const jpeg_decompress_struct &d) { return d.min_DCT_v_scaled_size; }
inline int dct_size(const jpeg_component_info &c) { return c.DCT_v_scaled_size; }
#else
inline int min_dct_size(const jpeg_decompress_struct &d) { return d.min_DCT_scaled_size; }
inline int dct_size(const jpeg_component_info &c) { return c.DCT_scaled_size; }
#endif
