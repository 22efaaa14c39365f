// SPDX-License-Identifier: Apache-2.0
#include "read/fits_codes.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/kernel.h"
#include "read/fits_bits.h"

template <class Pixel>
void unrice(const uint8_t *data, int64_t size, int64_t n, int64_t block, int32_t *to) {
  constexpr int kBits = 8 * sizeof(Pixel), kCountBits = kBits == 8 ? 3 : kBits == 16 ? 4 : 5;
  constexpr int kRaw = kBits == 8 ? 6 : kBits == 16 ? 14 : 25;
  typedef std::make_unsigned_t<Pixel> Word;
  FitsBits bits(data, size);
  Word last = (Word)bits.take(kBits);
  for (int64_t i = 0; i < n;) {
    const int low = (int)bits.take(kCountBits) - 1;
    for (const int64_t end = std::min(n, i + block); i < end; i++) {
      uint32_t d = 0;
      if (low == kRaw)
        d = bits.take(kBits);
      else if (low > kRaw)
        fail("the compressed tile is damaged");
      else if (low >= 0)
        d = (uint32_t)bits.zeros() << low, d |= bits.take(low);
      last = (Word)(last + (Word)(d & 1 ? ~(d >> 1) : d >> 1));
      to[i] = (Pixel)last;
    }
  }
}

template void unrice<uint8_t>(const uint8_t *, int64_t, int64_t, int64_t, int32_t *);
template void unrice<int16_t>(const uint8_t *, int64_t, int64_t, int64_t, int32_t *);
template void unrice<int32_t>(const uint8_t *, int64_t, int64_t, int64_t, int32_t *);

void unplio(const uint8_t *data, int64_t size, int64_t n, int32_t *to) {
  const int64_t words = size / 2;
  auto word = [&](int64_t i) {
    if (i >= words) fail("the compressed tile ends too early");
    return (int32_t)(data[2 * i] << 8 | data[2 * i + 1]);
  };
  const bool is_old = words > 2 && word(2) > 0 && word(2) < 32768;
  const int64_t count = is_old ? word(2) : word(3) + ((int64_t)word(4) << 15);
  int64_t x = 0, high = 1;
  std::fill_n(to, n, 0);
  for (int64_t i = is_old ? 3 : word(1); i < count && x < n; i++) {
    const int32_t operation = word(i) >> 12, value = word(i) & 4095;
    const int64_t end = std::min<int64_t>(n, x + value);
    switch (operation) {
      case 0:
      case 4:
      case 5:
        if (operation == 4) std::fill(to + x, to + end, (int32_t)high);
        if (operation == 5 && value && x + value <= n) to[end - 1] = (int32_t)high;
        x = end;
        break;
      case 1:
        high = ((int64_t)word(++i) << 12) + value;
        break;
      case 2:
      case 6:
        high += value;
        break;
      case 3:
      case 7:
        high -= value;
        break;
      default:
        fail("the compressed tile is damaged");
    }
    if (operation == 6 || operation == 7) to[x++] = (int32_t)high;
    if (high < INT32_MIN || high > INT32_MAX) fail("the compressed tile is damaged");
  }
}

int64_t gunzip(const uint8_t *data, int64_t size, char *to, int64_t room) {
  z_stream z{};
  if (size > std::numeric_limits<uInt>::max() || room > std::numeric_limits<uInt>::max())
    fail("the compressed tile has more than 4 GiB");
  if (inflateInit2(&z, 15 + 32) != Z_OK) throw std::bad_alloc();
  z.next_in = const_cast<uint8_t *>(data), z.avail_in = (uInt)size;
  z.next_out = (uint8_t *)to, z.avail_out = (uInt)room;
  const int status = inflate(&z, Z_FINISH);
  const int64_t got = room - z.avail_out;
  inflateEnd(&z);
  if (status != Z_STREAM_END) fail("the compressed tile is damaged");
  return got;
}
