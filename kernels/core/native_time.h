// SPDX-License-Identifier: Apache-2.0
// CPU time of this thread in longer native calls, to tell it apart from that of Python.
#pragma once
#include <cstdint>
#include <ctime>

// Counts from its construction to its end; nested ones count once.
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
