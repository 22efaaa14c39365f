// SPDX-License-Identifier: Apache-2.0
// The first step of both hybrid JPEG decoders: libjpeg reads the headers, from which a picture's record is made.
#pragma once
#include <csetjmp>

#include "decode/codec.h"
#include "decode/image.h"
#include "decode/jpeg_coefficients.h"
#include "decode/libjpeg.h"

// Files that libjpeg complains about are left to `decode`.
struct JpegHeaders {
  jpeg_decompress_struct d;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jmp_buf failed;
};

// Prepares for the file `in`; all following steps run under setjmp(j.failed).
void begin_headers(JpegHeaders &j, Bytes in);

// Reads up to the scan. Returns false if the size is not as announced, or hybrid decoders don't support the file.
bool read_headers(JpegHeaders &j, int64_t height, int64_t width);

// Fills in the record of a picture for its window `w` (as stored), except `bytes` and `offset`.
void describe_picture(JpegRecord &r, const jpeg_decompress_struct &d, const Window &w, bool gray);

// Calls read(j) for the file `in`; returns whether it succeeded.
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
