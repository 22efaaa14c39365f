// SPDX-License-Identifier: Apache-2.0
// Reads the bits of FITS tiles, highest bit of a byte first.
#pragma once
#include <cstdint>

#include "core/kernel.h"

class FitsBits {
 public:
  FitsBits(const uint8_t *data, int64_t size) : at_(data), end_(data + size) {}
  uint32_t take(int n) {
    uint64_t value = 0;
    for (; n > 0; n--) value = value << 1 | next();
    return (uint32_t)value;
  }
  int next() {
    if (!left_) {
      if (at_ == end_) fail("the compressed tile ends too early");
      byte_ = *at_++, left_ = 8;
    }
    return byte_ >> --left_ & 1;
  }
  int zeros() {
    int n = 0;
    while (!next()) n++;
    return n;
  }
  void skip_to_byte() { left_ = 0; }

 private:
  const uint8_t *at_, *end_;
  int byte_ = 0, left_ = 0;
};
