// SPDX-License-Identifier: Apache-2.0
#include "read/unread.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace {
// Never destroyed: they outlive all threads.
auto &files = *new std::unordered_map<const void *, std::shared_ptr<const Unread>>;
auto &mutex = *new std::shared_mutex;
std::atomic<int64_t> count{0};
}  // namespace

void unread_add(const void *data, Unread file) {
  auto kept = std::make_shared<const Unread>(std::move(file));
  std::lock_guard<std::shared_mutex> lock(mutex);
  files[data] = std::move(kept);
  count.store((int64_t)files.size(), std::memory_order_release);
}

void unread_remove(const void *data) {
  std::shared_ptr<const Unread> old;  // closed after the lock is released
  std::lock_guard<std::shared_mutex> lock(mutex);
  auto found = files.find(data);
  if (found == files.end()) return;
  old = std::move(found->second);
  files.erase(found);
  count.store((int64_t)files.size(), std::memory_order_release);
}

std::shared_ptr<const Unread> unread_at(const void *data) {
  if (!count.load(std::memory_order_acquire)) return nullptr;
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto found = files.find(data);
  return found == files.end() ? nullptr : found->second;
}
