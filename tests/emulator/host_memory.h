// SPDX-License-Identifier: Apache-2.0
// Host memory: guards behind allocations, ranges, and those that are registered as pinned memory.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

constexpr size_t kGuard = 256;
constexpr uint8_t kPoison = 0xCD, kGuardByte = 0xA7;

inline bool guard_intact(uint64_t address) {
  for (size_t i = 0; i < kGuard; i++)
    if (((const uint8_t *)address)[i] != kGuardByte) return false;
  return true;
}
inline bool guards_intact(uint64_t address, size_t size) {
  return guard_intact(address - kGuard) && guard_intact(address + size);
}

// Whether an address is in one of the ranges (begin, bytes).
inline bool covers(const std::map<uint64_t, size_t> &ranges, uint64_t address) {
  auto a = ranges.upper_bound(address);
  return a != ranges.begin() && (--a, address < a->first + a->second);
}

inline uint64_t checksum(const void *data, size_t bytes) {
  const uint8_t *p = (const uint8_t *)data;
  uint64_t sum = bytes, word;
  for (; bytes >= 8; p += 8, bytes -= 8) memcpy(&word, p, 8), sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
  for (; bytes; p++, bytes--) sum = (sum ^ *p) * 0x9E3779B97F4A7C15ull;
  return sum;
}

class RegisteredMemory {
 public:
  // Whether the range was added: not if a part of it is registered, or `limit` bytes would be exceeded.
  bool add(uint64_t begin, size_t bytes, size_t limit) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto next = ranges_.lower_bound(begin);
    if (covers(ranges_, begin) || (next != ranges_.end() && next->first < begin + bytes)) return false;
    size_t sum = bytes;
    for (auto &r : ranges_) sum += r.second;
    if (sum > limit) return false;
    return ranges_[begin] = bytes, true;
  }
  // Removes the range that begins there. Returns its bytes, or 0 if there is none.
  size_t remove(uint64_t begin) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto r = ranges_.find(begin);
    if (r == ranges_.end()) return 0;
    const size_t bytes = r->second;
    return ranges_.erase(r), bytes;
  }
  bool has(uint64_t address) {
    std::lock_guard<std::mutex> lock(mutex_);
    return covers(ranges_, address);
  }
  int64_t count() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ranges_.size();
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, size_t> ranges_;
};

inline bool is_mapped(uint64_t begin, size_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  return !mincore((void *)begin, bytes, pages.data());
}
