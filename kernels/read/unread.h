// SPDX-License-Identifier: Apache-2.0
// Files of which only the beginning was read, because who takes their bytes reads what it needs of the rest itself.
// Such a file is known by the address of its beginning, as long as the batch that it belongs to.
#pragma once
#include <memory>

#include "read/storage.h"

struct Unread {
  std::shared_ptr<Object> object;
  int64_t begun;  // bytes that were read
};

void unread_add(const void *data, Unread file);
void unread_remove(const void *data);
// Null where all was read.
std::shared_ptr<const Unread> unread_at(const void *data);
