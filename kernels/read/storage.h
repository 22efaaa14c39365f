// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a data set come from: objects that are opened by their names and read by spans. They are files of
// this machine (local_files.cpp), or by their URLs objects of others (remote.h).
#pragma once
#include <cstdint>
#include <memory>

#include "core/kernel.h"

// The whole content in a block from the memory pool, which is then the caller's, and its size.
struct Content {
  char *data;
  int64_t size;
};

// How many files a cache of open ones may keep so: a quarter of those that the process may have; 0 without a limit.
size_t share_of_open_files();

// Any number of threads may read one at once.
class Object {
 public:
  virtual ~Object() = default;
  // In bytes, now: it may have changed since it was opened.
  virtual int64_t length() = 0;
  // That at some time since it was opened, which is cheaper to ask.
  virtual int64_t length_at_first() { return length(); }
  // Reads `length` bytes from `offset` on; says how many there were, fewer only if the object ends before.
  virtual int64_t read(int64_t offset, int64_t length, char *to) = 0;
  // Whether reading it most likely waits for nothing, as the system has it in memory.
  virtual bool is_at_hand() { return false; }
  virtual Content whole(bool allow_empty);
};

class Storage {
 public:
  enum Way {
    kKept,   // it will be read again: stays open while others do not need the room
    kOnce,   // read whole, and not soon again
    kDirect  // the same, past the system's cache if that is possible
  };
  virtual ~Storage() = default;
  // Fails with the reason. No lock is held while it waits.
  virtual std::shared_ptr<Object> open(const char *name, Way way) = 0;
  // Asks for bytes that this thread will read from the object in a moment (a length of -1: to the end), if that is
  // possible without waiting. Says whether it was.
  virtual bool ask_ahead(const char *, int64_t /* offset */, int64_t /* length */) { return false; }
  // What was asked for and not read is not wanted.
  virtual void drop_asked() {}
};

std::unique_ptr<Storage> local_files();
// One file that is not kept open, or the object of a URL.
std::shared_ptr<Object> open_object(const char *name, Storage::Way way);
std::shared_ptr<Object> open_remote(const char *name, Storage::Way way);

// Whether a name is a URL of a kind that can be read.
bool is_url(const char *name);
