// SPDX-License-Identifier: Apache-2.0
// Objects of other machines, kept in a folder of this one by blocks: a file for each, named by URL and number. It says
// of which version of the object it is, and has checksums. Any number of processes may use the folder at once, and may
// be killed at any moment, as files are written under another name first. What was not read for the longest time goes
// first; when a file was read is its time of change.
//
// What is read often stays open, so that nothing is left of a hit but the bytes and their checksums.
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

  // Keeps at most about `most_bytes`; 0 for no limit.
  DiskCache(const char *folder, int64_t most_bytes);
  ~DiskCache();

  // Reads bytes of a block; false if they are not there in this version, or damaged.
  bool read(const std::string &url, int64_t block, RemoteVersion version, int64_t offset, int64_t length, char *to);
  // Of which version its first block is, and the ETag of that; false if there is none.
  bool find(const std::string &url, RemoteVersion *version, std::string *tag);
  // Nothing is said of errors but one warning: then it only reads from now on.
  void write(const std::string &url, int64_t block, RemoteVersion version, const std::string &tag, const char *data,
             int64_t bytes);

 private:
  struct Name {
    uint64_t file, check;  // two hashes: that of the file's name, and one that is in it
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

  const std::string folder_;
  const int64_t most_bytes_;
  std::atomic<bool> writes_{true};
  std::mutex mutex_;                 // of making room
  std::atomic<int64_t> until_look_;  // bytes to write until it is looked again how much there is
  size_t most_open_;
  std::mutex open_mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const Block>> open_;  // by name
  time_t open_period_ = 0;
};
