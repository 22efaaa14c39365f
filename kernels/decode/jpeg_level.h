// SPDX-License-Identifier: Apache-2.0
// Which of the ways to the same pixels of a JPEG file is taken; the tests compare them.
#pragma once

enum JpegLevel { LIBJPEG_ONLY, PLAIN_LOOPS, VECTOR_LOOPS };  // AVX2 or NEON

// The highest that this processor has and `jpeg_limit` allows.
JpegLevel jpeg_level();
