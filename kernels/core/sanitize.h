// SPDX-License-Identifier: Apache-2.0
// Shows reused memory to AddressSanitizer as new: only what was requested can be read and written, and the content
// differs every time. No effect in other builds.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>

// Makes the first `used` of a block's `size` bytes accessible.
inline void handed_out(void *block, int64_t used, int64_t size) {
  __asan_unpoison_memory_region(block, used);
  __asan_poison_memory_region((char *)block + used, size - used);
}
inline void given_back(void *block, int64_t size) { __asan_poison_memory_region(block, size); }
// Fills undefined memory with changing values.
inline void undefined(void *block, int64_t used) {
  constexpr int64_t kFilled = 1 << 16;
  static thread_local uint8_t fill = 0;
  if (used > 0) std::memset(block, fill += 59, used < kFilled ? used : kFilled);
}
#else
inline void handed_out(void *, int64_t, int64_t) {}
inline void given_back(void *, int64_t) {}
inline void undefined(void *, int64_t) {}
#endif
