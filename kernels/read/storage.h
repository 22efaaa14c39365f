// SPDX-License-Identifier: Apache-2.0
// The source of a data set's bytes: objects that are opened by name and read by spans. They are local files
// (local_files.cpp), or remote objects given by URL (remote.h).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel.h"

// The whole content in a block from the memory pool, which belongs to the caller, and its size.
struct Content {
  char *data;
  int64_t size;
};

// How many files a cache may keep open: a quarter of those that the process may still open; 0 if there is no limit.
size_t share_of_open_files();

// Safe for concurrent reads.
class Object {
 public:
  virtual ~Object() = default;
  // The current size in bytes: it may have changed since the object was opened.
  virtual int64_t length() = 0;
  // The size at some time since it was opened, which may be cheaper.
  virtual int64_t length_at_first() { return length(); }
  // Reads `length` bytes from `offset` on; returns how many were read, fewer only if the object ends before.
  virtual int64_t read(int64_t offset, int64_t length, char *to) = 0;
  // Whether reading probably does not block, as the system has it in memory.
  virtual bool is_at_hand() { return false; }
  virtual Content whole(bool allow_empty);
};

class Storage {
 public:
  enum Way {
    kKept,   // will be read again: stays open unless others need the room
    kOnce,   // read whole, and not again soon
    kDirect  // like kOnce, bypassing the system's cache if possible
  };
  virtual ~Storage() = default;
  // Fails with the reason. Holds no lock while waiting.
  virtual std::shared_ptr<Object> open(const char *name, Way way) = 0;
  // Whether it has to be told which objects in buckets will be read soon, as their URLs have to be signed.
  virtual bool signs_urls() const { return false; }
  virtual void will_read(const std::vector<std::string> &) {}
  // Requests bytes that this thread will soon read from the object (length -1: to the end), if that is possible without
  // waiting. Returns whether it was.
  virtual bool ask_ahead(const char *, int64_t /* offset */, int64_t /* length */) { return false; }
  // Cancels requests that were not read.
  virtual void drop_asked() {}
};

std::unique_ptr<Storage> local_files();
// A single file that is not kept open, or the object of a URL.
std::shared_ptr<Object> open_object(const char *name, Storage::Way way);
std::shared_ptr<Object> open_remote(const char *name, Storage::Way way);
