// SPDX-License-Identifier: Apache-2.0
#include "read/remote.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "core/export.h"
#include "core/memory.h"

static uint64_t hash_of(const std::string &name) { return std::hash<std::string>()(name); }

namespace {

struct RemoteObject : Object {
  RemoteObject(RemoteStorage &s, const char *n) : storage(s), name(n) {}
  RemoteStorage &storage;
  const std::string name;
  int64_t length() override { return storage.size(name); }
  int64_t read(int64_t offset, int64_t length, char *to) override {
    length = std::min(length, storage.size(name) - offset);
    return length > 0 ? storage.read(name, offset, length, to).size : 0;
  }
  Content whole(bool allow_empty) override {
    const Content content = storage.read(name, 0, RemoteRequest::kToTheEnd, nullptr);
    if (content.size || allow_empty) return content;
    memory_give(content.data);
    fail("the object is empty");
  }
};

// For scanners, which look at an object from front to back, here and there: reads more ahead the closer these places
// are to each other, as a request takes as long as a few hundred kilobytes. For one thread.
struct ReadAhead : Object {
  static constexpr int64_t kLeast = 64 << 10, kMost = 8 << 20;
  explicit ReadAhead(std::shared_ptr<Object> o) : object(std::move(o)) {}
  int64_t length() override { return object->length(); }
  int64_t read(int64_t offset, int64_t length, char *to) override {
    if (length >= kMost) return object->read(offset, length, to);
    const int64_t end = begin + (int64_t)data.size();
    if (offset < begin || offset + length > end) {
      ahead = offset >= begin && offset - end < ahead ? std::min(2 * ahead, kMost) : kLeast;
      data.resize(std::max(length, ahead));
      begin = offset;
      data.resize(object->read(offset, (int64_t)data.size(), data.data()));
    }
    const int64_t n = std::min(length, begin + (int64_t)data.size() - offset);
    memcpy(to, data.data() + (offset - begin), n);
    return n;
  }
  const std::shared_ptr<Object> object;
  std::vector<char> data;
  int64_t begin = 0, ahead = kLeast;
};

}  // namespace

std::shared_ptr<Object> RemoteStorage::open(const char *name, Way way) {
  if (!is_url(name)) return files_->open(name, way);
  return std::make_shared<RemoteObject>(*this, name);
}

void RemoteStorage::know(const std::string &name, RemoteVersion found) {
  std::lock_guard<std::mutex> lock(mutex_);
  versions_[hash_of(name)] = found;
}

int64_t RemoteStorage::size(const std::string &name) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = versions_.find(hash_of(name));
    if (found != versions_.end()) return found->second.size;
  }
  return ask(name, 0, RemoteRequest::kOnlySize, nullptr)->found.size;
}

Content RemoteStorage::read(const std::string &name, int64_t offset, int64_t length, char *to) {
  return ask(name, offset, length, to)->content;
}

std::shared_ptr<RemoteRequest> RemoteStorage::ask(const std::string &name, int64_t offset, int64_t length, char *to) {
  auto answer = queue_.ask(name, offset, length, to, counts_, closing_);
  RemoteVersion first;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    first = versions_.emplace(hash_of(name), answer->found).first->second;
  }
  if (first.size == answer->found.size && first.version == answer->found.version) return answer;
  if (!to && answer->content.data) memory_give(answer->content.data);
  fail("the object has changed since it was found: it has %lld bytes now and had %lld, or its ETag is another",
       (long long)answer->found.size, (long long)first.size);
}

thread_local RemoteStorage *RemoteStorage::selected = nullptr;

std::shared_ptr<Object> open_remote(const char *name, Storage::Way way) {
  RemoteStorage *const storage = RemoteStorage::selected;
  if (!storage) fail("a URL can't be read here");
  return std::make_shared<ReadAhead>(storage->open(name, way));
}

// Where objects are that scanners of this thread open by a URL.
EXPORT void remote_select(RemoteStorage *storage) { RemoteStorage::selected = storage; }
EXPORT_SHORT(remote_select)
// Null: no memory.
EXPORT RemoteStorage *remote_create(RemoteQueue *queue) {
  try {
    return new RemoteStorage(*queue);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_SHORT(remote_create)
EXPORT void remote_destroy(RemoteStorage *storage) { delete storage; }
EXPORT_SHORT(remote_destroy)
EXPORT void remote_know(RemoteStorage *storage, const char *name, int64_t size, uint64_t version) {
  storage->know(name, {size, version});
}
EXPORT_SHORT(remote_know)
EXPORT void remote_counts(RemoteStorage *storage, RemoteCounts *counts) { *counts = storage->counts(); }
EXPORT_SHORT(remote_counts)
EXPORT void remote_close(RemoteStorage *storage) { storage->close(); }
EXPORT_SHORT(remote_close)
