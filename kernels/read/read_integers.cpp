// SPDX-License-Identifier: Apache-2.0
#include "core/export.h"
#include "core/native_time.h"

// Parses the non-negative integers in `size` bytes of text, separated by white space. Returns their number, of which at
// most `room` are stored; or -1 - i if no integer below 2^63 begins at byte i.
EXPORT int64_t read_integers(const char *text, int64_t size, int64_t *out, int64_t room) {
  NativeTime time;
  auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  int64_t n = 0;
  for (int64_t i = 0; i < size;) {
    if (is_space(text[i])) {
      i++;
      continue;
    }
    const int64_t begin = i;
    uint64_t v = 0;
    for (; i < size && !is_space(text[i]); i++) {
      const unsigned digit = (unsigned char)text[i] - '0';
      if (digit > 9 || v > ((uint64_t)INT64_MAX - digit) / 10) return -1 - begin;
      v = 10 * v + digit;
    }
    if (n < room) out[n] = (int64_t)v;
    n++;
  }
  return n;
}
EXPORT_LONG(read_integers)
