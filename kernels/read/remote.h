// SPDX-License-Identifier: Apache-2.0
// Objects that other machines keep: those whose names are URLs.
#pragma once
#include <shared_mutex>
#include <unordered_set>

#include "read/disk_cache.h"

// Those of one reader. It reads each object in the version in which it was found, or read first.
class RemoteStorage : public Storage {
 public:
  // `cache` null: nothing is kept on this machine.
  RemoteStorage(RemoteQueue &queue, DiskCache *cache) : queue_(queue), cache_(cache) {}
  // Names that are no URLs are files of this machine.
  std::shared_ptr<Object> open(const char *name, Way way) override;
  bool ask_ahead(const char *name, int64_t offset, int64_t length) override;
  void drop_asked() override { queue_.drop_asked(); }

  int64_t size(const std::string &name);
  // `to` null: in a block that is then the caller's.
  Content read(const std::string &name, int64_t offset, int64_t length, char *to);
  Content read_whole(const std::string &name);
  void know(const std::string &name, RemoteVersion found);
  // Nobody waits any more for what is being read.
  void close() { closing_ = true; }
  RemoteCounts counts() const {
    const auto now = [](const int64_t &n) { return __atomic_load_n(&n, __ATOMIC_RELAXED); };
    const RemoteCounts &c = counts_;
    return {now(c.requests), now(c.retries), now(c.failed), now(c.bytes), now(c.cached_bytes), now(c.hedged)};
  }

  static thread_local RemoteStorage *selected;  // by which this thread opens what is not of a reader's table

 private:
  typedef std::shared_ptr<RemoteRequest> Answer;
  Answer ask(const std::string &name, int64_t offset, int64_t length, char *to, const std::string &unless = "");
  bool known(const std::string &name, RemoteVersion *version);
  bool from_cache(const std::string &name, RemoteVersion version, int64_t offset, int64_t length, char *to);
  void keep(const std::string &name, const RemoteRequest &answer, int64_t offset, const char *data, int64_t bytes);
  void read_blocks(const std::string &name, RemoteVersion version, int64_t offset, int64_t length, char *to);
  // While there is one, nobody else reads the block from far away: they wait, and find it in the cache.
  struct Turn {
    Turn(RemoteStorage &storage, uint64_t block);
    ~Turn();
    RemoteStorage &storage;
    const uint64_t block;
  };

  RemoteQueue &queue_;
  DiskCache *const cache_;
  RemoteCounts counts_{};
  std::atomic<bool> closing_{false};
  std::unique_ptr<Storage> files_ = local_files();
  std::shared_mutex versions_mutex_;
  std::unordered_map<uint64_t, RemoteVersion> versions_;  // by a hash of the name
  std::mutex mutex_;                                      // of turns
  std::condition_variable turns_;
  std::unordered_set<uint64_t> being_read_;
};
