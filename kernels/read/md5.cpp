// SPDX-License-Identifier: Apache-2.0
#include "read/md5.h"

#include <cmath>
#include <cstring>

namespace {

struct Sines {
  uint32_t of[64];
  Sines() {
    for (int i = 0; i < 64; i++) of[i] = (uint32_t)(int64_t)std::floor(4294967296.0 * std::fabs(std::sin(i + 1.0)));
  }
};

void take_block(uint32_t state[4], const unsigned char *block) {
  static const Sines sines;
  static const int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
  memcpy(words, block, 64);
  for (int i = 0; i < 64; i++) {
    uint32_t mixed;
    int word;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16;
        break;
      case 2:
        mixed = b ^ c ^ d, word = (3 * i + 5) % 16;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i % 16;
    }
    const uint32_t sum = a + mixed + sines.of[i] + words[word];
    const int turn = turns[i / 16][i % 4];
    a = d, d = c, c = b;
    b += sum << turn | sum >> (32 - turn);
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

}  // namespace

// For little-endian processors only.
void md5(const void *data, int64_t size, unsigned char digest[16]) {
  uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const unsigned char *at = (const unsigned char *)data;
  int64_t left = size;
  for (; left >= 64; left -= 64, at += 64) take_block(state, at);
  unsigned char end[128] = {};
  if (left) memcpy(end, at, left);
  end[left] = 0x80;
  const int64_t padded = left < 56 ? 64 : 128;
  const uint64_t bits = (uint64_t)size * 8;
  memcpy(end + padded - 8, &bits, 8);
  for (int64_t i = 0; i < padded; i += 64) take_block(state, end + i);
  memcpy(digest, state, 16);
}
