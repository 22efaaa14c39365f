// SPDX-License-Identifier: Apache-2.0
#include "core/memory.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <vector>

#include "core/native_time.h"
#include "core/python.h"
#include "core/sanitize.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

constexpr int64_t kHuge = 2 << 20;
constexpr int64_t kMostIdle = 512ll << 20;  // bytes that may always stay idle
constexpr int64_t kWindow = 10;             // seconds

// Four classes per power of two: at most a quarter is wasted, and neighbouring sizes share a class.
constexpr int kSmallestShift = 10;  // 4096 bytes in quarters
int class_of(int64_t bytes) {
  if (bytes <= 4 << kSmallestShift) return 0;
  int shift = 63 - __builtin_clzll((uint64_t)(bytes - 1)) - 2;
  return (shift - kSmallestShift) * 4 + (int)((bytes - 1) >> shift) - 3;
}
int64_t size_of(int number) { return (int64_t)(number % 4 + 4) << (number / 4 + kSmallestShift); }

// Lies before each block; its size keeps the block 64-byte aligned.
struct alignas(64) Header {
  uint64_t mark;
  int32_t number;  // of its size class
};
constexpr uint64_t kTaken = 0x70656e73746f636b, kFree = ~kTaken;

// The maximum of the last one to two windows.
class RecentMost {
 public:
  void add(int64_t value) {
    timespec t;
#if defined(__linux__)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    if (t.tv_sec - since_ >= kWindow) {
      before_ = t.tv_sec - since_ < 2 * kWindow ? now_ : 0;
      now_ = 0;
      since_ = t.tv_sec;
    }
    now_ = std::max(now_, value);
  }
  int64_t value() const { return std::max(now_, before_); }

 private:
  int64_t now_ = 0, before_ = 0, since_ = 0;
};

class Cache {
 public:
  void *take(int64_t bytes) {
    int number = class_of(bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    auto &blocks = free_.at(number);
    asked_[number] = ++clock_;
    Header *h = nullptr;
    if (!blocks.empty()) {
      h = blocks.back();
      blocks.pop_back();
      idle_ -= size_of(number);
    } else {
      h = create(size_of(number));
      if (!h) {
        release(0);
        h = create(size_of(number));
      }
      if (!h) return nullptr;
    }
    *h = {kTaken, number};
    used_ += size_of(number);
    most_.add(used_);
    handed_out(h + 1, bytes, size_of(number));
    undefined(h + 1, bytes);
    return h + 1;
  }
  // Takes back the blocks at `first`, `first + stride` bytes, ...; null ones are skipped.
  void give(void *const *first, int64_t n, int64_t stride) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (int64_t i = 0; i < n; i++) {
      void *p = *(void *const *)((const char *)first + i * stride);
      if (!p) continue;
      Header *h = (Header *)p - 1;
      if (h->mark != kTaken) continue;
      h->mark = kFree;
      used_ -= size_of(h->number);
      idle_ += size_of(h->number);
      free_[h->number].push_back(h);
      given_back(p, size_of(h->number));
    }
    if (idle_ > kMostIdle) {
      // Keeps what recent batches needed: getting cleared memory from the system takes longer than most kernels.
      most_.add(used_);
      release(std::max(kMostIdle, most_.value() + most_.value() / 2 - used_));
    }
  }
  // Returns idle blocks to the system until at most `keep` bytes (kMostIdle if negative) are idle. Forgets the peak of
  // use until now.
  void trim(int64_t keep) {
    std::lock_guard<std::mutex> lock(mutex_);
    most_ = {};
    release(keep < 0 ? kMostIdle : keep);
  }
  // A process must not be forked while another thread holds the mutex: the child could never unlock it.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  int64_t used() const { return used_; }
  int64_t idle() const { return idle_; }

 private:
  static Header *create(int64_t size) {
    size += sizeof(Header);
    if (size < kHuge) return (Header *)std::aligned_alloc(alignof(Header), size);
    size = (size + kHuge - 1) / kHuge * kHuge;
    void *p = std::aligned_alloc(kHuge, size);
#if defined(__linux__)
    if (p) madvise(p, size, MADV_HUGEPAGE);
#endif
    return (Header *)p;
  }
  // Frees the sizes requested longest ago first: the next batch will request the others again, and memory from the
  // system costs more than what a batch does with it.
  void release(int64_t keep) {
    while (idle_ > keep) {
      int oldest = -1;
      for (int number = 0; number < kClasses; number++)
        if (!free_[number].empty() && (oldest < 0 || asked_[number] < asked_[oldest])) oldest = number;
      if (oldest < 0) return;
      for (auto &blocks = free_[oldest]; !blocks.empty() && idle_ > keep; blocks.pop_back()) {
        std::free(blocks.back());
        idle_ -= size_of(oldest);
      }
    }
  }
  static constexpr int kClasses = 4 * (62 - kSmallestShift - 2);
  std::mutex mutex_;
  std::array<std::vector<Header *>, kClasses> free_;
  std::array<uint64_t, kClasses> asked_{};  // when a block of a class was last requested
  uint64_t clock_ = 0;
  int64_t used_ = 0, idle_ = 0;
  RecentMost most_;  // bytes in use at once
};

// Never destroyed: arrays may outlive every static object.
Cache &cache() {
  static Cache *c = [] {
    auto unlock = [] { cache().unlock(); };
    pthread_atfork([] { cache().lock(); }, unlock, unlock);
    return new Cache;
  }();
  return *c;
}

constexpr const char *kMemory = "penstock.memory";

}  // namespace

EXPORT void *memory_take(int64_t bytes) {
  try {
    return cache().take(bytes);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_SHORT(memory_take)
EXPORT void memory_give(void *p) { cache().give(&p, 1, 0); }
EXPORT_SHORT(memory_give)
// Returns a Python object that gives back memory when its last reference is dropped. Null, with a Python error set, on
// failure.
EXPORT PyObject *own_memory(void *p) {
  return python.new_capsule(p, kMemory, [](PyObject *capsule) { memory_give(python.pointer(capsule, kMemory)); });
}
EXPORT_SHORT(own_memory)
void memory_give_blocks(void *const *blocks, int64_t n) { cache().give(blocks, n, sizeof *blocks); }
// Gives back the memory of n tensors, each a block of its own; null ones are skipped.
EXPORT void memory_give_all(const Tensor *rows, int64_t n) {
  NativeTime time;
  cache().give(&rows->data, n, sizeof(Tensor));
}
EXPORT_SHORT(memory_give_all)

EXPORT void memory_trim(int64_t keep) { cache().trim(keep); }
EXPORT_LONG(memory_trim)
EXPORT int64_t memory_used() { return cache().used(); }
EXPORT_SHORT(memory_used)
EXPORT int64_t memory_idle() { return cache().idle(); }
EXPORT_SHORT(memory_idle)
