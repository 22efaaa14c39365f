// SPDX-License-Identifier: Apache-2.0
// Reads bit fields, as used in headers of video streams.
#pragma once
#include <cstdint>

#include "decode/image.h"

// Bits of a payload, without the emulation prevention bytes (00 00 03) of H.264 and HEVC. Fails beyond the end.
class Bits {
 public:
  explicit Bits(Bytes b) : bytes_(b) {}

  uint32_t bit() {
    if (!left_) next_byte();
    return current_ >> --left_ & 1;
  }
  uint32_t bits(int n) {
    uint32_t x = 0;
    while (n-- > 0) x = x << 1 | bit();
    return x;
  }
  void skip(int n) {
    while (n-- > 0) bit();
  }
  // Exp-Golomb numbers: unsigned, and signed.
  uint32_t ue() {
    int zeros = 0;
    while (!bit())
      if (++zeros > 31) fail("a number of more than 32 bits");
    return (uint32_t)((1ull << zeros) - 1 + bits(zeros));
  }
  int32_t se() {
    const uint32_t x = ue();
    return x & 1 ? (int32_t)(x / 2) + 1 : -(int32_t)(x / 2);
  }
  // An unsigned number; fails if it is greater than `most`.
  int ue_until(uint32_t most) {
    const uint32_t x = ue();
    if (x > most) fail("a number that is too large: %u of at most %u", x, most);
    return (int)x;
  }

 private:
  void next_byte() {
    if (zeros_ >= 2 && bytes_.has(at_, 1) && bytes_.data[at_] == 3) at_++, zeros_ = 0;
    current_ = bytes_.u8(at_++), left_ = 8;
    zeros_ = current_ ? 0 : zeros_ + 1;
  }

  Bytes bytes_;
  int64_t at_ = 0;
  int zeros_ = 0, left_ = 0;
  uint32_t current_ = 0;
};
