// SPDX-License-Identifier: Apache-2.0
// How much processor time of this thread goes into native calls that take a while, so that what Python takes can be
// told apart.
#pragma once
#include <cstdint>
#include <ctime>

// Counts from its construction to its end, once where there are several within each other.
class NativeTime {
 public:
  NativeTime() : begin_(depth++ ? 0 : now()) {}
  ~NativeTime() {
    if (!--depth) total += now() - begin_;
  }
  static thread_local int64_t total;  // nanoseconds
  static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
  }

 private:
  static thread_local int depth;
  const int64_t begin_;
};
