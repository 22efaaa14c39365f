// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a data set come from: objects that are opened by their names and read by spans. Files of this
// machine are the first implementation; object stores are to be others.
#pragma once
#include <cstdint>
#include <memory>

#include "core/kernel.h"

// Any number of threads may read one at once.
class Object {
 public:
  virtual ~Object() = default;
  // In bytes, now: it may have changed since it was opened.
  virtual int64_t length() = 0;
  // Reads `length` bytes from `offset` on; says how many there were, fewer only if the object ends before.
  virtual int64_t read(int64_t offset, int64_t length, char *to) = 0;
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
};

std::unique_ptr<Storage> local_files();
// One file that is not kept open.
std::unique_ptr<Object> open_file(const char *name, Storage::Way way);

// The whole content in a block from the memory pool, which is then the caller's, and its size.
struct Content {
  char *data;
  int64_t size;
};
Content read_whole(Object &object, bool allow_empty);
