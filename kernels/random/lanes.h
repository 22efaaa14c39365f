// SPDX-License-Identifier: Apache-2.0
// Random words of many blocks at once, in loops that vectorize if the caller is marked CLONES.
#pragma once
#include "random/distribution.h"

constexpr int kLanes = 32;

// Words of `kLanes` blocks: w[j][i] is word j of block first + i.
struct Lanes {
  uint32_t w[4][kLanes];
};

inline void lanes_of(const DistributionArgs &r, uint32_t first, uint32_t stream, Lanes &c) {
  const uint32_t low = (uint32_t)(uint64_t)r.position, high = (uint32_t)((uint64_t)r.position >> 32) ^ stream << 16;
  uint32_t(&c0)[kLanes] = c.w[0], (&c1)[kLanes] = c.w[1], (&c2)[kLanes] = c.w[2], (&c3)[kLanes] = c.w[3];
  for (int i = 0; i < kLanes; i++) c0[i] = first + i, c1[i] = low, c2[i] = high, c3[i] = (uint32_t)r.epoch;
  uint32_t k0 = (uint32_t)(uint64_t)r.key, k1 = (uint32_t)((uint64_t)r.key >> 32);
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < kLanes; i++) {
      uint64_t x = (uint64_t)0xD2511F53u * c0[i], y = (uint64_t)0xCD9E8D57u * c2[i];
      c0[i] = (uint32_t)(y >> 32) ^ c1[i] ^ k0;
      c2[i] = (uint32_t)(x >> 32) ^ c3[i] ^ k1;
      c1[i] = (uint32_t)y;
      c3[i] = (uint32_t)x;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

constexpr int kLaneWords = 4 * kLanes;

// The same in order: words[4 i + j] is word j of block first + i.
void lane_words(const DistributionArgs &r, uint32_t first, uint32_t (&words)[kLaneWords]);
