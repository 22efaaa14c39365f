// SPDX-License-Identifier: Apache-2.0
// A record of MXNet's RecordIO files that holds an image and its labels.
#pragma once
#include <cstdint>
#include <cstring>

struct RecordioArgs {
  int32_t unused;
};

// A record has one part, or several if its data contains the magic number, which is then left out between parts.
struct RecordIoPart {
  static constexpr uint32_t kMagic = 0xced7230a;
  static constexpr int64_t kHeader = 8;
  bool is_magic;
  int kind;  // 0: single, 1: first, 2: middle, 3: last
  int64_t length;
  explicit RecordIoPart(const char *header) {
    uint32_t magic, word;
    memcpy(&magic, header, 4), memcpy(&word, header + 4, 4);
    is_magic = magic == kMagic && word >> 29 < 4;
    kind = (int)(word >> 29), length = word & ((1u << 29) - 1);
  }
  bool is_first() const { return kind < 2; }
  bool is_last() const { return kind == 0 || kind == 3; }
  int64_t padded() const { return (length + 3) / 4 * 4; }
};
