// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
#pragma once
#include "core/tensor.h"

struct Philox {
  uint32_t key[2];
  // Replaces the counter by four random words.
  SHARED void block(uint32_t c[4]) const {
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
      uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
      uint32_t x0 = (uint32_t)(b >> 32) ^ c[1] ^ k0, x2 = (uint32_t)(a >> 32) ^ c[3] ^ k1;
      c[1] = (uint32_t)b;
      c[3] = (uint32_t)a;
      c[0] = x0;
      c[2] = x2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};
