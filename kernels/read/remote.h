// SPDX-License-Identifier: Apache-2.0
// Remote objects: those whose names are URLs.
#pragma once
#include <shared_mutex>
#include <unordered_set>

#include "read/disk_cache.h"

// The remote objects of one reader. Each object is read in one version: the one listed, or else the one read first.
class RemoteStorage : public Storage {
 public:
  // `cache` may be null.
  RemoteStorage(RemoteQueue &queue, DiskCache *cache) : queue_(queue), cache_(cache) {}
  // Names that are not URLs are local files.
  std::shared_ptr<Object> open(const char *name, Way way) override;
  // With a cache, the objects to request are known only after looking into it.
  bool signs_urls() const override { return !cache_; }
  void will_read(const std::vector<std::string> &names) override { queue_.will_read(names); }
  bool ask_ahead(const char *name, int64_t offset, int64_t length) override;
  void drop_asked() override { queue_.drop_asked(); }

  int64_t size(const std::string &name);
  // If `to` is null, the content is in a block that belongs to the caller.
  Content read(const std::string &name, int64_t offset, int64_t length, char *to);
  Content read_whole(const std::string &name);
  void know(const std::string &name, RemoteVersion found);
  // Makes all requests fail, including those in progress.
  void close() { closing_ = true; }
  RemoteCounts counts() const {
    const auto now = [](const int64_t &n) { return __atomic_load_n(&n, __ATOMIC_RELAXED); };
    const RemoteCounts &c = counts_;
    return {now(c.requests), now(c.retries), now(c.failed), now(c.bytes), now(c.cached_bytes), now(c.hedged)};
  }

  static thread_local RemoteStorage *selected;  // by which this thread opens URLs outside of a reader's table

 private:
  typedef std::shared_ptr<RemoteRequest> Answer;
  Answer ask(const std::string &name, int64_t offset, int64_t length, char *to, const std::string &unless = "");
  bool known(const std::string &name, RemoteVersion *version);
  bool from_cache(const std::string &name, RemoteVersion version, int64_t offset, int64_t length, char *to);
  void keep(const std::string &name, const RemoteRequest &answer, int64_t offset, const char *data, int64_t bytes);
  void read_blocks(const std::string &name, RemoteVersion version, int64_t offset, int64_t length, char *to);
  // While it exists, no other thread downloads the block: they wait and then find it in the cache.
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
  std::mutex mutex_;                                      // guards being_read_
  std::condition_variable turns_;
  std::unordered_set<uint64_t> being_read_;
};
