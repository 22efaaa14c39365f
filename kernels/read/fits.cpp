// SPDX-License-Identifier: Apache-2.0
// FITS 4.0 (https://fits.gsfc.nasa.gov/fits_standard.html): headers of cards of 80 characters, and data of big-endian
// numbers, both in blocks of 2880 bytes.
#include "read/fits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "read/fits_cards.h"
#include "read/fits_tiles.h"
#include "read/parser.h"

namespace {

using fits_cards::integer;
using fits_cards::kCard;
using fits_cards::real;
using fits_cards::unreadable;
using fits_cards::value_of;

constexpr int64_t kBlock = 2880;
constexpr int kMaxAxes = 999;

struct Hdu {
  int64_t bitpix = 0, naxis = -1, axes[kMaxDims] = {}, elements = 1, groups = 1, parameters = 0;
  double scale = 1, zero = 0;
  bool is_image = false, is_compressed = false;
  int64_t header = 0, data = 0, bytes = 0;  // offsets in the file, and the number of data bytes
};

// Reads the HDU that begins at `at`; moves `at` to the next one.
Hdu next_hdu(Part file, int number, int64_t &at) {
  Hdu h;
  bool has_end = false, is_random_groups = false, begins_with_zero = false;
  int64_t first = at, seen_axes = 0;
  for (; !has_end; at += kBlock) {
    if (file.size - at < kBlock) {
      if (at == first && at == file.size) fail("the file has %d HDUs, number %d was asked for", number - 1, number);
      fail("HDU %d: the file ends within its header", number);
    }
    for (int64_t k = 0; k < kBlock && !has_end; k += kCard) {
      const std::string_view card(file.data + at + k, kCard);
      const std::string_view key = fits_cards::key_of(card);
      if (at == first && k == 0) {
        if (number == 1 ? key != "SIMPLE" : key != "XTENSION")
          fail("HDU %d: the header begins with '%.*s' instead of %s%s", number, (int)key.size(), key.data(),
               number == 1 ? "SIMPLE" : "XTENSION", number == 1 ? ": this is no FITS file" : "");
        h.is_image = number == 1 || value_of(card).substr(0, 6) == "'IMAGE";
      } else if (key == "END") {
        has_end = true;
      } else if (key == "BITPIX") {
        h.bitpix = integer(number, card);
      } else if (key == "NAXIS") {
        h.naxis = integer(number, card);
        if (h.naxis < 0 || h.naxis > kMaxAxes) unreadable(number, card);
      } else if (key.substr(0, 5) == "NAXIS") {
        const int64_t extent = integer(number, card);
        if (extent < 0) unreadable(number, card);
        seen_axes++;
        int64_t axis = 0;
        const char *last = key.data() + key.size();
        const auto [end, error] = std::from_chars(key.data() + 5, last, axis);
        if (error != std::errc() || end != last || axis != seen_axes) unreadable(number, card);
        if (axis > h.naxis) continue;
        if (axis <= kMaxDims) h.axes[axis - 1] = extent;
        if (axis == 1 && extent == 0) {
          begins_with_zero = true;
        } else if (__builtin_mul_overflow(h.elements, extent, &h.elements)) {
          fail("HDU %d: the header promises more than 2^63 elements", number);
        }
      } else if (key == "PCOUNT") {
        h.parameters = integer(number, card);
      } else if (key == "GCOUNT") {
        h.groups = integer(number, card);
      } else if (key == "BSCALE") {
        h.scale = real(number, card);
      } else if (key == "BZERO") {
        h.zero = real(number, card);
      } else if (key == "GROUPS") {
        is_random_groups = value_of(card) == "T";
      } else if (key == "ZIMAGE") {
        h.is_compressed = value_of(card) == "T";
      }
    }
  }
  const int64_t b = h.bitpix;
  if (b != 8 && b != 16 && b != 32 && b != 64 && b != -32 && b != -64)
    fail("HDU %d: BITPIX is %lld; accepted are 8, 16, 32, 64, -32 and -64", number, (long long)b);
  if (h.naxis < 0 || seen_axes < h.naxis) fail("HDU %d: the header lacks NAXIS, or extents of axes", number);
  if (h.parameters < 0 || h.groups < 0) fail("HDU %d: PCOUNT or GCOUNT is below 0", number);
  is_random_groups = is_random_groups && number == 1 && begins_with_zero;
  if (is_random_groups) h.is_image = false;
  if (h.naxis == 0 || (begins_with_zero && !is_random_groups)) h.elements = 0;
  h.header = first, h.data = at;
  int64_t padded;
  if (__builtin_add_overflow(h.elements, h.parameters, &h.bytes) ||
      __builtin_mul_overflow(h.bytes, h.groups, &h.bytes) ||
      __builtin_mul_overflow(h.bytes, std::abs(b) / 8, &h.bytes) ||
      __builtin_add_overflow(h.bytes, kBlock - 1, &padded))
    fail("HDU %d: the header promises more than 2^63 bytes", number);
  if (h.bytes > file.size - at)
    fail("HDU %d: the header promises %lld bytes of data, behind it the file has %lld", number, (long long)h.bytes,
         (long long)(file.size - at));
  at = std::min(at + padded / kBlock * kBlock, file.size);  // some files lack the padding after the last data
  return h;
}

// The smallest type for all values of an image: the stored one; for scaled values an integer type if they are only
// shifted by an integer, else float for up to 16 bits and double beyond.
int dtype_of(const Hdu &h) {
  if (h.bitpix == -32) return FLOAT;
  if (h.bitpix == -64) return FLOAT64;
  const double zero = h.zero;
  if (h.scale != 1 || zero != std::floor(zero)) return h.bitpix <= 16 ? FLOAT : FLOAT64;
  if (zero == 0) return h.bitpix == 8 ? UINT8 : h.bitpix == 16 ? INT16 : h.bitpix == 32 ? INT32 : INT64;
  if (h.bitpix == 64) return zero == 9223372036854775808.0 ? UINT64 : FLOAT64;
  const double low = h.bitpix == 8 ? zero : zero - std::ldexp(1, (int)h.bitpix - 1);
  const double high = h.bitpix == 8 ? zero + 255 : zero + std::ldexp(1, (int)h.bitpix - 1) - 1;
  const auto holds = [&](auto t) {
    using T = decltype(t);
    return low >= (double)std::numeric_limits<T>::min() && high <= (double)std::numeric_limits<T>::max();
  };
  if (holds(int8_t())) return INT8;
  if (holds(uint8_t())) return UINT8;
  if (holds(int16_t())) return INT16;
  if (holds(uint16_t())) return UINT16;
  if (holds(int32_t())) return INT32;
  if (holds(uint32_t())) return UINT32;
  return std::fabs(zero) < 4e18 ? INT64 : FLOAT64;
}

template <int kBytes>
auto unsigned_of_size() {
  if constexpr (kBytes == 1)
    return uint8_t();
  else if constexpr (kBytes == 2)
    return uint16_t();
  else if constexpr (kBytes == 4)
    return uint32_t();
  else
    return uint64_t();
}

template <class Stored>
Stored stored(const char *from) {
  decltype(unsigned_of_size<sizeof(Stored)>()) bits;
  memcpy(&bits, from, sizeof bits);
  if constexpr (sizeof bits == 2) bits = __builtin_bswap16(bits);
  if constexpr (sizeof bits == 4) bits = __builtin_bswap32(bits);
  if constexpr (sizeof bits == 8) bits = __builtin_bswap64(bits);
  Stored x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

template <class Stored, class Out>
void convert(const char *from, Out *to, int64_t n, const Hdu &h) {
  if (h.scale == 1 && h.zero == 0) {
    for (int64_t i = 0; i < n; i++) to[i] = (Out)stored<Stored>(from + i * sizeof(Stored));
  } else if constexpr (std::is_integral_v<Out>) {  // only shifted, and all values fit
    const uint64_t zero = h.zero == 9223372036854775808.0 ? 1ull << 63 : (uint64_t)(int64_t)h.zero;
    for (int64_t i = 0; i < n; i++) to[i] = (Out)((uint64_t)(int64_t)stored<Stored>(from + i * sizeof(Stored)) + zero);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = (Out)((double)stored<Stored>(from + i * sizeof(Stored)) * h.scale + h.zero);
  }
}

template <class Stored>
void convert(Sample &sample, Tensor &out, const char *from, const Hdu &h) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      out.dtype, [&](auto t) {
        using Out = decltype(t);
        int64_t bytes;
        if (__builtin_mul_overflow(h.elements, (int64_t)sizeof(Out), &bytes)) fail("the image is too large");
        out.data = sample.take(std::max<int64_t>(bytes, 1));
        convert<Stored>(from, out.as<Out>(), h.elements, h);
      });
}

// Decompresses the tiles of a table to an uncompressed image.
Hdu unpacked(Sample &sample, int number, const Hdu &table, const char *&from) {
  const Part file = sample.parts[0];
  const FitsTiles tiles({file.data + table.header, (size_t)(table.data - table.header)}, number, table.bytes);
  Hdu h;
  h.bitpix = tiles.bitpix, h.naxis = tiles.naxis, h.scale = table.scale, h.zero = table.zero, h.is_image = true;
  for (int d = 0; d < h.naxis; d++) h.elements *= h.axes[d] = tiles.axes[d];
  int64_t bytes;
  if (__builtin_mul_overflow(h.elements, std::abs(h.bitpix) / 8, &bytes))
    fail("HDU %d: the image is too large", number);
  char *image = (char *)sample.take(bytes);
  tiles.decode(file.data + table.data, image, sample.scratch);
  from = image;
  return h;
}

void give(Sample &sample, int k, int number, const Hdu &stored, int64_t wanted) {
  const char *from = sample.parts[0].data + stored.data;
  const Hdu h = stored.is_compressed ? unpacked(sample, number, stored, from) : stored;
  if (!h.is_image) fail("HDU %d is no image but a table or groups; only images are read", number);
  if (!h.naxis) fail("HDU %d has no data; hdu_indices says which HDUs are read, counted from 1", number);
  if (h.naxis > kMaxDims)
    fail("HDU %d has %lld dimensions, at most %d are accepted", number, (long long)h.naxis, kMaxDims);
  Tensor &out = sample.out(k);
  const int dtype = dtype_of(h);
  static const char *const names[] = {"UINT8", "UINT16", "UINT32",  "UINT64", "INT8",    "INT16",
                                      "INT32", "INT64",  "FLOAT16", "FLOAT",  "FLOAT64", "BOOL"};
  if (wanted >= 0 && wanted != dtype)
    fail("HDU %d holds %s, and dtypes says %s; fn.cast converts", number, names[dtype],
         wanted < 12 ? names[wanted] : "?");
  out.dtype = dtype, out.ndim = (int)h.naxis;
  for (int d = 0; d < out.ndim; d++) out.shape[d] = h.axes[out.ndim - 1 - d];  // the first axis varies fastest
  if (h.bitpix == 8 && h.scale == 1 && h.zero == 0) return sample.give_elements(k, from, h.elements);
  switch (h.bitpix) {
    case 8:
      return convert<uint8_t>(sample, out, from, h);
    case 16:
      return convert<int16_t>(sample, out, from, h);
    case 32:
      return convert<int32_t>(sample, out, from, h);
    case 64:
      return convert<int64_t>(sample, out, from, h);
    case -32:
      return convert<float>(sample, out, from, h);
    default:
      return convert<double>(sample, out, from, h);
  }
}

void parse(Sample &sample, const FitsArgs &a) {
  int64_t last = 0, at = 0;
  for (int k = 0; k < a.n_outputs; k++) last = std::max(last, a.hdus[k]);
  for (int64_t number = 1; number <= last; number++) {
    const Hdu h = next_hdu(sample.parts[0], (int)number, at);
    for (int k = 0; k < a.n_outputs; k++)
      if (a.hdus[k] == number) give(sample, k, (int)number, h, a.dtypes[k]);
  }
}

}  // namespace

EXPORT_PARSER(fits, FitsArgs, parse)
