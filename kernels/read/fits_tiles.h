// SPDX-License-Identifier: Apache-2.0
// Images stored as tiles, each compressed separately, in the rows of a binary table (FITS 4.0, section 10).
#pragma once
#include <string_view>

#include "read/parser.h"

struct FitsTiles {
  int64_t bitpix = 0, naxis = 0, axes[kMaxDims] = {};  // of the image, as in an uncompressed one's header

  // `header` are the cards of HDU `number`, a table with `bytes` bytes of data. Fails if it is not supported.
  FitsTiles(std::string_view header, int number, int64_t bytes);
  // Writes the uncompressed image, elements x |bitpix| / 8 bytes. `scratch` is the thread's.
  void decode(const char *data, char *image, Scratch &scratch) const;

 private:
  enum Kind { kRice, kGzip, kShuffledGzip, kPlio, kHcompress, kNone };
  struct Column {
    int64_t at = -1;  // offset in a row; -1 if there is none
    char type = 0, pointed = 0;
    bool is_array = false;  // stored in the heap, with elements of type `pointed`
  };
  struct Bytes {
    const uint8_t *data;
    int64_t size;
  };
  void read_cards(std::string_view header);
  void check();
  Bytes array_at(const char *data, const Column &column, int64_t row) const;
  double number_at(const char *data, const Column &column, int64_t row, double otherwise) const;
  int width_of(int64_t bytes, int64_t n) const;
  void decode_tile(const char *data, int64_t row, int64_t n, char *tile, Scratch &scratch) const;
  void to_integers(Bytes from, int64_t n, int32_t *to, Scratch &scratch) const;
  void to_floats(const char *data, int64_t row, int64_t n, const int32_t *from, char *tile) const;

  const int number_;
  const int64_t bytes_;
  Kind kind_ = kRice;
  int64_t row_bytes_ = 0, rows_ = 0, heap_ = -1, tile_[kMaxDims] = {};
  int64_t block_ = 32, byte_pixels_ = 4;  // for Rice's code
  Column compressed_, gzip_, plain_, scale_column_, zero_column_, blank_column_;
  bool is_smooth_ = false;  // for HCOMPRESS
  bool has_scale_ = false, has_blank_ = false;
  double scale_ = 1, zero_ = 0;
  int64_t blank_ = 0, dither_ = 0, seed_ = 1;  // dither_: 0 none, 1 or 2: the standard's methods
};
