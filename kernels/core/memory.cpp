// SPDX-License-Identifier: Apache-2.0
// 64-byte aligned memory for batches, in size classes that are kept and handed out again.
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/kernel.h"

namespace {

constexpr int64_t kHuge = 2 << 20;

// Four classes per power of two: at most a quarter is wasted, and neighbouring sizes meet in one class.
int64_t size_class(int64_t bytes) {
  if (bytes <= 4096) return 4096;
  int shift = 63 - __builtin_clzll((uint64_t)(bytes - 1)) - 2;
  return ((bytes - 1) >> shift) + 1 << shift;
}

class Cache {
 public:
  void *take(int64_t bytes) {
    int64_t size = size_class(bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    void *p = nullptr;
    auto &blocks = free_[size];
    if (!blocks.empty()) {
      p = blocks.back();
      blocks.pop_back();
      idle_ -= size;
    } else {
      p = std::aligned_alloc(size >= kHuge ? kHuge : 64, size >= kHuge ? (size + kHuge - 1) / kHuge * kHuge : size);
      if (!p) return nullptr;
#if defined(__linux__)
      if (size >= kHuge) madvise(p, size, MADV_HUGEPAGE);
#endif
    }
    sizes_[p] = size;
    used_ += size;
    return p;
  }
  void give(void *p) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = sizes_.find(p);
    if (it == sizes_.end()) return;
    int64_t size = it->second;
    sizes_.erase(it);
    used_ -= size;
    free_[size].push_back(p);
    idle_ += size;
    if (idle_ > limit_) release(limit_);
  }
  // Returns idle blocks to the system, largest first, until at most `keep` bytes are idle.
  void trim(int64_t keep) {
    std::lock_guard<std::mutex> lock(mutex_);
    release(keep);
  }
  void set_limit(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    limit_ = bytes;
    release(limit_);
  }
  // A process must not be forked while another thread holds the mutex: in the child nobody would ever let go of it.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  int64_t used() const { return used_; }
  int64_t idle() const { return idle_; }

 private:
  void release(int64_t keep) {
    for (auto it = free_.rbegin(); it != free_.rend() && idle_ > keep; ++it)
      while (!it->second.empty() && idle_ > keep) {
        std::free(it->second.back());
        it->second.pop_back();
        idle_ -= it->first;
      }
  }
  std::mutex mutex_;
  std::map<int64_t, std::vector<void *>> free_;
  std::unordered_map<void *, int64_t> sizes_;
  int64_t used_ = 0, idle_ = 0, limit_ = 512ll << 20;
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

}  // namespace

EXPORT void *memory_take(int64_t bytes) {
  try {
    return cache().take(bytes);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT void memory_give(void *p) { cache().give(p); }
EXPORT void memory_trim(int64_t keep) { cache().trim(keep); }
EXPORT void memory_limit(int64_t bytes) { cache().set_limit(bytes); }
EXPORT int64_t memory_used() { return cache().used(); }
EXPORT int64_t memory_idle() { return cache().idle(); }
