// SPDX-License-Identifier: Apache-2.0
// Objects that other machines keep: those whose names are URLs.
#pragma once
#include "read/remote_queue.h"

// Those of one reader. It reads each object in the version in which it was found, or read first.
class RemoteStorage : public Storage {
 public:
  explicit RemoteStorage(RemoteQueue &queue) : queue_(queue) {}
  // Names that are no URLs are files of this machine.
  std::shared_ptr<Object> open(const char *name, Way way) override;

  int64_t size(const std::string &name);
  // `to` null: in a block that is then the caller's.
  Content read(const std::string &name, int64_t offset, int64_t length, char *to);
  void know(const std::string &name, RemoteVersion found);
  // Nobody waits any more for what is being read.
  void close() { closing_ = true; }
  RemoteCounts counts() { return queue_.read(counts_); }

  static thread_local RemoteStorage *selected;  // by which this thread opens what is not of a reader's table

 private:
  std::shared_ptr<RemoteRequest> ask(const std::string &name, int64_t offset, int64_t length, char *to);

  RemoteQueue &queue_;
  RemoteCounts counts_{};
  std::atomic<bool> closing_{false};
  std::unique_ptr<Storage> files_ = local_files();
  std::mutex mutex_;
  std::unordered_map<uint64_t, RemoteVersion> versions_;  // by a hash of the name
};
