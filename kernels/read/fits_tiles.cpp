// SPDX-License-Identifier: Apache-2.0
#include "read/fits_tiles.h"

#include <limits>

#include "read/fits_cards.h"
#include "read/fits_codes.h"

namespace {

using fits_cards::integer;
using fits_cards::key_of;
using fits_cards::numbered;
using fits_cards::text_of;
using fits_cards::value_of;

constexpr int kMaxColumns = 999;
constexpr int32_t kZero = -2147483646;  // stands for 0 in the second dithering method
constexpr int kRandoms = 10000;

template <class T>
T big_endian(const char *from) {
  uint8_t bytes[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); i++) bytes[i] = (uint8_t)from[sizeof(T) - 1 - i];
  T value;
  memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T>
void put_big_endian(char *to, T value) {
  char bytes[sizeof(T)];
  memcpy(bytes, &value, sizeof(T));
  for (size_t i = 0; i < sizeof(T); i++) to[i] = bytes[sizeof(T) - 1 - i];
}

int64_t bytes_of(char type) {
  switch (type) {
    case 'L':
    case 'A':
    case 'B':
      return 1;
    case 'I':
      return 2;
    case 'J':
    case 'E':
      return 4;
    case 'K':
    case 'D':
    case 'C':
    case 'P':
      return 8;
    case 'M':
    case 'Q':
      return 16;
    default:
      return 0;
  }
}

// The standard's random numbers (appendix I), in [0, 1).
struct Randoms {
  float value[kRandoms];
  Randoms() {
    int64_t seed = 1;
    for (float &v : value) {
      seed = seed * 16807 % 2147483647;
      v = (float)((double)seed / 2147483647.0);
    }
  }
};

}  // namespace

FitsTiles::FitsTiles(std::string_view header, int number, int64_t bytes) : number_(number), bytes_(bytes) {
  read_cards(header);
  check();
}

void FitsTiles::read_cards(std::string_view header) {
  Column columns[kMaxColumns];
  std::string_view names[kMaxColumns];
  int64_t given[kMaxDims] = {}, count = 0;
  bool is_blocksize[kMaxDims + 1] = {}, is_bytepix[kMaxDims + 1] = {}, is_smooth[kMaxDims + 1] = {};
  std::string_view kind = "an unknown code";
  auto axis = [](int64_t n) { return n >= 1 && n <= kMaxDims; };
  for (; header.size() >= (size_t)fits_cards::kCard; header.remove_prefix(fits_cards::kCard)) {
    const std::string_view card = header.substr(0, fits_cards::kCard), key = key_of(card);
    int64_t n;
    if (key == "END") break;
    if (key == "NAXIS1")
      row_bytes_ = integer(number_, card);
    else if (key == "NAXIS2")
      rows_ = integer(number_, card);
    else if (key == "THEAP")
      heap_ = integer(number_, card);
    else if (key == "ZBITPIX")
      bitpix = integer(number_, card);
    else if (key == "ZNAXIS")
      naxis = integer(number_, card);
    else if ((n = numbered(key, "ZNAXIS")) && axis(n))
      axes[n - 1] = integer(number_, card);
    else if ((n = numbered(key, "ZTILE")) && axis(n))
      given[n - 1] = integer(number_, card);
    else if (key == "ZCMPTYPE")
      kind = text_of(card);
    else if (key == "ZQUANTIZ")
      dither_ = text_of(card) == "SUBTRACTIVE_DITHER_1" ? 1 : text_of(card) == "SUBTRACTIVE_DITHER_2" ? 2 : 0;
    else if (key == "ZDITHER0")
      seed_ = integer(number_, card);
    else if (key == "ZSCALE")
      scale_ = fits_cards::real(number_, card), has_scale_ = true;
    else if (key == "ZZERO")
      zero_ = fits_cards::real(number_, card);
    else if (key == "ZBLANK")
      blank_ = integer(number_, card), has_blank_ = true;
    else if ((n = numbered(key, "ZNAME")) && axis(n))
      is_blocksize[n] = text_of(card) == "BLOCKSIZE", is_bytepix[n] = text_of(card) == "BYTEPIX",
      is_smooth[n] = text_of(card) == "SMOOTH";
    else if ((n = numbered(key, "ZVAL")) && axis(n) && is_blocksize[n])
      block_ = integer(number_, card);
    else if (n && axis(n) && is_bytepix[n])
      byte_pixels_ = integer(number_, card);
    else if (n && axis(n) && is_smooth[n])
      is_smooth_ = integer(number_, card) != 0;
    else if ((n = numbered(key, "TTYPE")) && n <= kMaxColumns)
      names[n - 1] = text_of(card);
    else if ((n = numbered(key, "TFORM")) && n <= kMaxColumns) {
      std::string_view form = text_of(card);
      int64_t repeat = 1;
      const auto [end, error] = std::from_chars(form.data(), form.data() + form.size(), repeat);
      if (error == std::errc()) form.remove_prefix(end - form.data());
      Column &c = columns[n - 1];
      c.type = form.empty() ? 0 : form[0];
      c.is_array = c.type == 'P' || c.type == 'Q';
      c.pointed = form.size() > 1 ? form[1] : 0;
      const int64_t width = c.type == 'X' ? 1 : bytes_of(c.type);
      if (!width || repeat < 0 || repeat > bytes_) fits_cards::unreadable(number_, card);
      c.at = c.type == 'X' ? (repeat + 7) / 8 : repeat * width;  // its size in bytes for now
      count = std::max(count, n);
    }
  }
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    Column c = columns[i];
    const int64_t width = std::max<int64_t>(c.at, 0);
    c.at = at, at += width;
    if (at > row_bytes_) fail("HDU %d: the columns of the table have more bytes than its rows", number_);
    if (width < bytes_of(c.type)) continue;  // an empty column
    if (names[i] == "COMPRESSED_DATA") compressed_ = c;
    if (names[i] == "GZIP_COMPRESSED_DATA") gzip_ = c;
    if (names[i] == "UNCOMPRESSED_DATA") plain_ = c;
    if (names[i] == "ZSCALE") scale_column_ = c, has_scale_ = true;
    if (names[i] == "ZZERO") zero_column_ = c;
    if (names[i] == "ZBLANK") blank_column_ = c, has_blank_ = true;
  }
  for (int d = 0; d < kMaxDims; d++) tile_[d] = given[d] ? given[d] : d ? 1 : axes[0];
  if (kind == "RICE_1" || kind == "RICE_ONE")
    kind_ = kRice;
  else if (kind == "GZIP_1")
    kind_ = kGzip;
  else if (kind == "GZIP_2")
    kind_ = kShuffledGzip;
  else if (kind == "PLIO_1")
    kind_ = kPlio;
  else if (kind == "HCOMPRESS_1")
    kind_ = kHcompress;
  else if (kind == "NOCOMPRESS")
    kind_ = kNone;
  else
    fail(
        "HDU %d is compressed by %.*s; RICE_1, GZIP_1, GZIP_2, PLIO_1, HCOMPRESS_1 and NOCOMPRESS are read, funpack "
        "decompresses others",
        number_, (int)std::min<size_t>(kind.size(), 40), kind.data());
}

void FitsTiles::check() {
  const int64_t b = bitpix;
  if (b != 8 && b != 16 && b != 32 && b != 64 && b != -32 && b != -64)
    fail("HDU %d: ZBITPIX is %lld; accepted are 8, 16, 32, 64, -32 and -64", number_, (long long)b);
  if (naxis < 1 || naxis > kMaxDims)
    fail("HDU %d has %lld dimensions, 1 to %d are accepted", number_, (long long)naxis, kMaxDims);
  if (block_ < 1 || (byte_pixels_ != 1 && byte_pixels_ != 2 && byte_pixels_ != 4))
    fail("HDU %d: BLOCKSIZE %lld or BYTEPIX %lld can't be", number_, (long long)block_, (long long)byte_pixels_);
  int64_t tiles = 1, elements = 1;
  for (int d = 0; d < naxis; d++) {
    if (axes[d] < 1 || tile_[d] < 1) fail("HDU %d: ZNAXIS%d or ZTILE%d is below 1", number_, d + 1, d + 1);
    tile_[d] = std::min(tile_[d], axes[d]);
    if (__builtin_mul_overflow(tiles, (axes[d] - 1) / tile_[d] + 1, &tiles) ||
        __builtin_mul_overflow(elements, axes[d], &elements))
      fail("HDU %d: the header promises more than 2^63 elements", number_);
  }
  int64_t table;
  if (row_bytes_ < 0 || rows_ < 0 || __builtin_mul_overflow(row_bytes_, rows_, &table) || table > bytes_)
    fail("HDU %d: the table has more rows than data", number_);
  if (heap_ < 0) heap_ = table;
  if (heap_ > bytes_) fail("HDU %d: the heap of the table begins behind its data", number_);
  if (tiles > rows_)
    fail("HDU %d: the image has %lld tiles, the table %lld rows", number_, (long long)tiles, (long long)rows_);
  // No code has more pixels per byte.
  const int64_t most_pixels = kind_ == kHcompress ? 1 << 17 : 1 << 13;
  if (elements / most_pixels > bytes_)
    fail("HDU %d: the header promises %lld pixels, more than %lld bytes can hold", number_, (long long)elements,
         (long long)bytes_);
  for (const Column *c : {&compressed_, &gzip_, &plain_})
    if (c->at >= 0 && (!c->is_array || !bytes_of(c->pointed)))
      fail("HDU %d: the column of compressed data has no arrays", number_);
  if (seed_ < 1 || seed_ > kRandoms) seed_ = 1;
}

FitsTiles::Bytes FitsTiles::array_at(const char *data, const Column &column, int64_t row) const {
  if (column.at < 0) return {nullptr, 0};
  const char *at = data + row * row_bytes_ + column.at;
  const bool is_wide = column.type == 'Q';
  const int64_t n = is_wide ? big_endian<int64_t>(at) : big_endian<int32_t>(at);
  const int64_t begin = is_wide ? big_endian<int64_t>(at + 8) : big_endian<int32_t>(at + 4);
  const int64_t room = bytes_ - heap_;
  int64_t size;
  if (n < 0 || begin < 0 || begin > room || __builtin_mul_overflow(n, bytes_of(column.pointed), &size) ||
      size > room - begin)
    fail("HDU %d: the compressed data of tile %lld lie beyond the table's heap", number_, (long long)row + 1);
  return {(const uint8_t *)data + heap_ + begin, size};
}

double FitsTiles::number_at(const char *data, const Column &column, int64_t row, double otherwise) const {
  if (column.at < 0) return otherwise;
  const char *at = data + row * row_bytes_ + column.at;
  switch (column.type) {
    case 'D':
      return big_endian<double>(at);
    case 'E':
      return big_endian<float>(at);
    case 'K':
      return (double)big_endian<int64_t>(at);
    case 'J':
      return big_endian<int32_t>(at);
    case 'I':
      return big_endian<int16_t>(at);
    default:
      fail("HDU %d: a column of the compressed image has the type %c, which is no number", number_, column.type);
  }
}

int FitsTiles::width_of(int64_t bytes, int64_t n) const {
  for (int width : {1, 2, 4, 8})
    if (bytes == n * width) return width;
  fail("a tile of %lld pixels has %lld bytes", (long long)n, (long long)bytes);
}

// Decodes to integer pixels.
void FitsTiles::to_integers(Bytes from, int64_t n, int32_t *to, Scratch &scratch) const {
  if (kind_ == kPlio) return unplio(from.data, from.size, n, to);
  if (kind_ == kHcompress) return unhcompress(from.data, from.size, n, is_smooth_, to, scratch);
  if (kind_ == kRice) {
    if (byte_pixels_ == 1) return unrice<uint8_t>(from.data, from.size, n, block_, to);
    if (byte_pixels_ == 2) return unrice<int16_t>(from.data, from.size, n, block_, to);
    return unrice<int32_t>(from.data, from.size, n, block_, to);
  }
  const char *stored = (const char *)from.data;
  int64_t size = from.size;
  if (kind_ != kNone) {
    char *room = (char *)scratch.get(8 * n, 1);
    size = gunzip(from.data, from.size, room, 8 * n);
    stored = room;
  }
  const int width = width_of(size, n);
  for (int64_t i = 0; i < n; i++) {
    uint64_t v = 0;
    for (int k = 0; k < width; k++)
      v = v << 8 | (uint8_t)(kind_ == kShuffledGzip ? stored[k * n + i] : stored[i * width + k]);
    to[i] = width == 1 ? (int32_t)v : width == 2 ? (int16_t)v : (int32_t)v;
  }
}

void FitsTiles::to_floats(const char *data, int64_t row, int64_t n, const int32_t *from, char *tile) const {
  static const Randoms randoms;
  const double scale = number_at(data, scale_column_, row, scale_), zero = number_at(data, zero_column_, row, zero_);
  const double blank = number_at(data, blank_column_, row, (double)blank_);
  int64_t seed = (row + seed_ - 1) % kRandoms;
  int64_t next = (int64_t)(randoms.value[seed] * 500);
  for (int64_t i = 0; i < n; i++) {
    double v = from[i];
    if (dither_) v = v - randoms.value[next] + 0.5;
    v = v * scale + zero;
    if (dither_ == 2 && from[i] == kZero) v = 0;
    if (has_blank_ && from[i] == blank) v = std::numeric_limits<double>::quiet_NaN();
    if (bitpix == -32)
      put_big_endian(tile + 4 * i, (float)v);
    else
      put_big_endian(tile + 8 * i, v);
    if (dither_ && ++next == kRandoms) {
      seed = (seed + 1) % kRandoms;
      next = (int64_t)(randoms.value[seed] * 500);
    }
  }
}

void FitsTiles::decode_tile(const char *data, int64_t row, int64_t n, char *tile, Scratch &scratch) const {
  const int64_t item = std::abs(bitpix) / 8;
  Bytes from = array_at(data, compressed_, row);
  const bool is_lossless = kind_ == kGzip || kind_ == kShuffledGzip || kind_ == kNone;
  const bool by_integers = !is_lossless || (bitpix < 0 ? has_scale_ : bitpix < 64);
  if (from.size && by_integers) {
    int32_t *pixels = (int32_t *)scratch.get(4 * n, 2);
    to_integers(from, n, pixels, scratch);
    if (bitpix < 0) {
      if (!has_scale_) fail("HDU %d: floats are compressed as integers, and there is no ZSCALE", number_);
      return to_floats(data, row, n, pixels, tile);
    }
    for (int64_t i = 0; i < n; i++) {
      if (bitpix == 8)
        tile[i] = (char)pixels[i];
      else if (bitpix == 16)
        put_big_endian(tile + 2 * i, (int16_t)pixels[i]);
      else if (bitpix == 32)
        put_big_endian(tile + 4 * i, pixels[i]);
      else
        put_big_endian(tile + 8 * i, (int64_t)pixels[i]);
    }
    return;
  }
  // Unquantized pixels, as stored in uncompressed images.
  bool is_shuffled = kind_ == kShuffledGzip, is_packed = kind_ != kNone;
  if (!from.size) from = array_at(data, gzip_, row), is_shuffled = false, is_packed = true;
  if (!from.size) from = array_at(data, plain_, row), is_packed = false;
  if (!from.size) fail("HDU %d: tile %lld has no data", number_, (long long)row + 1);
  const char *stored = (const char *)from.data;
  int64_t size = from.size;
  if (is_packed) {
    char *room = (char *)scratch.get(8 * n, 1);
    size = gunzip(from.data, from.size, room, 8 * n);
    stored = room;
  }
  if (size != item * n)
    fail("HDU %d: tile %lld has %lld bytes instead of %lld", number_, (long long)row + 1, (long long)size,
         (long long)(item * n));
  if (!is_shuffled) {
    memcpy(tile, stored, size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < item; k++) tile[i * item + k] = stored[k * n + i];
}

void FitsTiles::decode(const char *data, char *image, Scratch &scratch) const {
  const int64_t item = std::abs(bitpix) / 8;
  int64_t first[kMaxDims] = {};  // the tile's first pixel
  for (int64_t row = 0;; row++) {
    int64_t size[kMaxDims], n = 1;
    for (int d = 0; d < naxis; d++) n *= size[d] = std::min(tile_[d], axes[d] - first[d]);
    char *tile = (char *)scratch.get(item * n, 0);
    decode_tile(data, row, n, tile, scratch);
    // Copies lines to their places.
    int64_t at[kMaxDims] = {};
    for (int64_t line = 0; line < n / size[0]; line++) {
      int64_t place = 0;
      for (int d = (int)naxis - 1; d >= 0; d--) place = place * axes[d] + first[d] + at[d];
      memcpy(image + place * item, tile + line * size[0] * item, size[0] * item);
      for (int d = 1; d < naxis && ++at[d] == size[d]; d++) at[d] = 0;
    }
    int d = 0;
    for (; d < naxis; d++) {
      first[d] += tile_[d];
      if (first[d] < axes[d]) break;
      first[d] = 0;
    }
    if (d == naxis) return;
  }
}
