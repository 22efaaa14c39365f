// SPDX-License-Identifier: Apache-2.0
// A local folder that caches blocks of remote objects: one file per block, named by a hash of URL and block number. The
// file contains the object's version and checksums. Any number of processes may use the folder at once and be killed at
// any time, as files are written under a temporary name first. The least recently read files are deleted first; a
// file's modification time says when it was read.
//
// Files that are read often stay open, so a hit only reads the bytes and computes their checksums.
#pragma once
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "read/remote_queue.h"

class DiskCache {
 public:
  static constexpr int64_t kBlock = 1 << 20;

  // Keeps at most about `most_bytes` bytes; 0 for no limit.
  DiskCache(const char *folder, int64_t most_bytes);
  ~DiskCache();

  // Reads bytes of a block. Returns false if this version is not cached, or damaged.
  bool read(const std::string &url, int64_t block, RemoteVersion version, int64_t offset, int64_t length, char *to);
  // The version and ETag of the object's first block. Returns false if there is none.
  bool find(const std::string &url, RemoteVersion *version, std::string *tag);
  // Errors are not reported, except by one warning: the cache is read-only from then on.
  void write(const std::string &url, int64_t block, RemoteVersion version, const std::string &tag, const char *data,
             int64_t bytes);

 private:
  struct Name {
    uint64_t file, check;  // two hashes: one is the file's name, the other is stored in the file
  };
  struct Block;  // an open file
  static Name name_of(const std::string &url, int64_t block);
  std::string path_of(const Name &name) const;
  std::shared_ptr<const Block> open(const Name &name, RemoteVersion version);
  std::shared_ptr<const Block> open_anew(const Name &name) const;
  void forget(const Name &name);
  void close_all();
  void give_up(const char *doing, int error);
  bool make_room();
  void delete_oldest();

  const std::string folder_;
  const int64_t most_bytes_;
  std::atomic<bool> writes_{true};
  std::mutex mutex_;                 // held while making room
  std::atomic<int64_t> until_look_;  // bytes to write until the folder's size is checked again
  size_t most_open_;
  std::mutex open_mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const Block>> open_;  // by Name::file
  time_t open_period_ = 0;
};
