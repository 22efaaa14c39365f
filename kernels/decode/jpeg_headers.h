// SPDX-License-Identifier: Apache-2.0
// What both hybrid JPEG decoders begin with: libjpeg reads the headers, and a picture's record is made of them.
#pragma once
#include <csetjmp>

#include "decode/codec.h"
#include "decode/image.h"
#include "decode/jpeg_coefficients.h"
#include "decode/libjpeg.h"

// Whatever libjpeg complains about is left to `decode`.
struct JpegHeaders {
  jpeg_decompress_struct d;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jmp_buf failed;
};

// Prepares for the file `in`; what follows is done under setjmp(j.failed).
void begin_headers(JpegHeaders &j, Bytes in);

// Reads up to the scan. False: not of the size that was promised, or of a kind that hybrid decoders don't know.
bool read_headers(JpegHeaders &j, int64_t height, int64_t width);

// The record of a picture of which the window `w` (as stored) is wanted; `bytes` and `offset` are not set.
void describe_picture(JpegRecord &r, const jpeg_decompress_struct &d, const Window &w, bool gray);

// Calls read(j) for the file `in`; says whether it succeeded.
template <class Read>
bool with_headers(Bytes in, Read read) {
  JpegHeaders j;
  begin_headers(j, in);
  bool done = false;
  if (!setjmp(j.failed)) {
    try {
      done = read(j);
    } catch (...) {
      jpeg_destroy_decompress(&j.d);
      throw;
    }
  }
  jpeg_destroy_decompress(&j.d);
  return done;
}
