// SPDX-License-Identifier: Apache-2.0
// Which of the equivalent implementations decodes a JPEG file; the tests compare them.
#pragma once

enum JpegLevel { LIBJPEG_ONLY, PLAIN_LOOPS, VECTOR_LOOPS };  // AVX2 or NEON

// The highest level that this processor supports and `jpeg_limit` allows.
JpegLevel jpeg_level();
