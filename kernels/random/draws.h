// SPDX-License-Identifier: Apache-2.0
// The random numbers of a sample in sequence, for searches that need an unknown number of them. They are a function of
// (key, epoch, position), so they do not depend on the thread or the time.
#pragma once
#include "core/philox.h"

class Draws {
 public:
  // Numbers of different `stream`s are independent: see `Random` in core/rng.py.
  SHARED Draws(uint64_t key, uint64_t position, uint32_t epoch, uint64_t stream = 0)
      : philox_{{(uint32_t)key, (uint32_t)(key >> 32)}}, position_(position ^ stream << 48), epoch_(epoch) {}
  // 32 random bits.
  SHARED uint32_t word() {
    if (next_ == 4) {
      words_[0] = block_++;
      words_[1] = (uint32_t)position_;
      words_[2] = (uint32_t)(position_ >> 32);
      words_[3] = epoch_;
      philox_.block(words_);
      next_ = 0;
    }
    return words_[next_++];
  }
  // In [0, 1), with 53 random bits.
  SHARED double unit() {
    const uint64_t high = word();
    return (high * 2097152 + (word() >> 11)) * (1 / 9007199254740992.0);
  }
  SHARED double between(double low, double high) { return low + (high - low) * unit(); }
  // One of 0 .. n - 1.
  SHARED int64_t below(int64_t n) {
    const int64_t i = (int64_t)(unit() * (double)n);
    return i < n ? i : n - 1;
  }

 private:
  Philox philox_;
  uint64_t position_;
  uint32_t epoch_, block_ = 0, words_[4] = {};
  int next_ = 4;
};
