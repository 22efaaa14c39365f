// SPDX-License-Identifier: Apache-2.0
// Times of threads that wait for files and servers.
#pragma once
#include <chrono>
#include <cstdint>

// How often a waiting thread checks whether its result is still wanted.
constexpr int64_t kLookNs = 200000000;

// The monotonic clock.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
