// SPDX-License-Identifier: Apache-2.0
#include "read/decompress.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "core/kernel.h"

namespace {

constexpr int64_t kStep = 8;  // bytes copied at once if there is room

// Copies `n` bytes from `distance` before `to`; source and target may overlap.
void repeat(char *to, int64_t distance, int64_t n, int64_t room) {
  const char *from = to - distance;
  if (distance >= kStep && room >= n + kStep) {
    for (int64_t i = 0; i < n; i += kStep) memcpy(to + i, from + i, kStep);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
  }
}

}  // namespace

void unpack_snappy(const char *data, int64_t size, char *to, int64_t room) {
  const uint8_t *from = (const uint8_t *)data, *const end = from + size;
  char *const begin = to, *const last = to + room;
  auto number = [&](int bytes) {  // little-endian
    if (bytes > end - from) fail("it can't be decompressed: it ends too early");
    uint32_t value = 0;
    for (int k = 0; k < bytes; k++) value |= (uint32_t)from[k] << 8 * k;
    from += bytes;
    return (int64_t)value;
  };
  uint64_t told = 0;
  for (int shift = 0;; shift += 7) {
    const uint64_t byte = number(1);
    told |= (byte & 127) << shift;
    if (byte < 128) break;
    if (shift == 28) fail("it can't be decompressed: it does not say how large it is");
  }
  if (told != (uint64_t)room)
    fail("it can't be decompressed: it says that it has %llu bytes then, and should have %lld",
         (unsigned long long)told, (long long)room);
  while (from < end) {
    const int tag = *from++;
    int64_t n, distance;
    switch (tag & 3) {
      case 0:  // literals
        n = tag >> 2;
        n = 1 + (n < 60 ? n : number((int)n - 59));
        if (n > end - from || n > last - to) fail("it can't be decompressed: %lld bytes do not fit", (long long)n);
        memcpy(to, from, n);
        from += n, to += n;
        continue;
      case 1:
        n = (tag >> 2 & 7) + 4, distance = (tag & 0xe0) << 3 | number(1);
        break;
      case 2:
        n = (tag >> 2) + 1, distance = number(2);
        break;
      default:
        n = (tag >> 2) + 1, distance = number(4);
    }
    if (distance < 1 || distance > to - begin || n > last - to)
      fail("it can't be decompressed: it repeats %lld bytes from %lld before, where %lld are there", (long long)n,
           (long long)distance, (long long)(to - begin));
    repeat(to, distance, n, last - to);
    to += n;
  }
  if (to != last) fail("it can't be decompressed: it ends too early");
}

void unpack_zstd(const char *from, int64_t size, char *to, int64_t room) {
  const size_t n = ZSTD_decompress(to, (size_t)room, from, (size_t)size);
  if (ZSTD_isError(n)) fail("it can't be decompressed: %s", ZSTD_getErrorName(n));
  if ((int64_t)n != room)
    fail("it can't be decompressed: it has %lld bytes then, and should have %lld", (long long)n, (long long)room);
}

namespace {

template <class Unpack>
int outcome(Unpack unpack, const char *from, int64_t size, char *to, int64_t room, char *error) {
  try {
    unpack(from, size, to, room);
    return 0;
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 1;
  }
}

}  // namespace

// Returns 0, or 1 with the reason in `error`.
EXPORT int zstd_decompress(const char *from, int64_t size, char *to, int64_t room, char *error) {
  return outcome(unpack_zstd, from, size, to, room, error);
}
EXPORT_LONG(zstd_decompress)
EXPORT int snappy_decompress(const char *from, int64_t size, char *to, int64_t room, char *error) {
  return outcome(unpack_snappy, from, size, to, room, error);
}
EXPORT_LONG(snappy_decompress)
