// SPDX-License-Identifier: Apache-2.0
// Files of which only the beginning was read, as the consumer reads what it needs of the rest. Such a file is
// identified by the address of its beginning, as long as its batch lives.
#pragma once
#include <memory>
#include <string>

#include "read/storage.h"

struct Unread {
  std::string name;
  std::weak_ptr<Object> object;  // while it is open: batches must not keep more files open than a process may have
  int64_t begun;                 // bytes already read
  std::shared_ptr<Object> open() const {
    auto still = object.lock();
    return still ? still : open_object(name.c_str(), Storage::kOnce);
  }
};

void unread_add(const void *data, Unread file);
void unread_remove(const void *data);
// Null if all was read.
std::shared_ptr<const Unread> unread_at(const void *data);
