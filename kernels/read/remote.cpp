// SPDX-License-Identifier: Apache-2.0
#include "read/remote.h"

#include <algorithm>
#include <cstdio>
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
    const Content content = storage.read_whole(name);
    if (content.size || allow_empty) return content;
    memory_give(content.data);
    fail("the object is empty");
  }
};

// For scanners, which read short pieces of an object from front to back: reads more ahead the closer the pieces are to
// each other, as the latency of a request equals the transfer of a few hundred kilobytes. For one thread.
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

// With a cache, the blocks to request are known only after looking into it.
bool RemoteStorage::ask_ahead(const char *name, int64_t offset, int64_t length) {
  return !cache_ && queue_.ask_ahead(name, offset, length);
}

void RemoteStorage::know(const std::string &name, RemoteVersion found) {
  std::lock_guard<std::shared_mutex> lock(versions_mutex_);
  versions_[hash_of(name)] = found;
}

bool RemoteStorage::known(const std::string &name, RemoteVersion *version) {
  std::shared_lock<std::shared_mutex> lock(versions_mutex_);
  const auto found = versions_.find(hash_of(name));
  if (found == versions_.end()) return false;
  *version = found->second;
  return true;
}

int64_t RemoteStorage::size(const std::string &name) {
  RemoteVersion version;
  return known(name, &version) ? version.size : ask(name, 0, RemoteRequest::kOnlySize, nullptr)->found.size;
}

Content RemoteStorage::read(const std::string &name, int64_t offset, int64_t length, char *to) {
  RemoteVersion version;
  if (!cache_ || !known(name, &version)) return ask(name, offset, length, to)->content;
  read_blocks(name, version, offset, length, to);
  return {to, length};
}

Content RemoteStorage::read_whole(const std::string &name) {
  if (!cache_) return ask(name, 0, RemoteRequest::kToTheEnd, nullptr)->content;
  RemoteVersion version;
  std::string tag;
  bool is_known = known(name, &version);
  if (!is_known && cache_->find(name, &version, &tag)) {
    // Cached by an earlier run: asks once whether it has changed.
    const Answer answer = ask(name, 0, RemoteRequest::kToTheEnd, nullptr, tag);
    if (!answer->is_unchanged) {
      keep(name, *answer, 0, answer->content.data, answer->content.size);
      return answer->content;
    }
    know(name, version);
    is_known = true;
  }
  if (is_known) {
    std::unique_ptr<char, decltype(&memory_give)> to((char *)memory_take(std::max<int64_t>(version.size, 1)),
                                                     &memory_give);
    if (!to) fail("out of memory: the object has %lld bytes", (long long)version.size);
    read_blocks(name, version, 0, version.size, to.get());
    return {to.release(), version.size};
  }
  const Answer answer = ask(name, 0, RemoteRequest::kToTheEnd, nullptr);
  keep(name, *answer, 0, answer->content.data, answer->content.size);
  return answer->content;
}

RemoteStorage::Turn::Turn(RemoteStorage &s, uint64_t b) : storage(s), block(b) {
  std::unique_lock<std::mutex> lock(s.mutex_);
  s.turns_.wait(lock, [&] { return s.being_read_.insert(block).second; });
}

RemoteStorage::Turn::~Turn() {
  std::lock_guard<std::mutex> lock(storage.mutex_);
  storage.being_read_.erase(block);
  storage.turns_.notify_all();
}

bool RemoteStorage::from_cache(const std::string &name, RemoteVersion version, int64_t offset, int64_t length,
                               char *to) {
  const int64_t block = offset / DiskCache::kBlock;
  if (!cache_->read(name, block, version, offset - block * DiskCache::kBlock, length, to)) return false;
  add(counts_.cached_bytes, length);
  return true;
}

// `offset` is a block's beginning; the bytes are whole blocks, except at the object's end.
void RemoteStorage::keep(const std::string &name, const RemoteRequest &answer, int64_t offset, const char *data,
                         int64_t bytes) {
  for (int64_t at = 0; at < std::max<int64_t>(bytes, 1); at += DiskCache::kBlock)
    cache_->write(name, (offset + at) / DiskCache::kBlock, answer.found, answer.tag, data + at,
                  std::min(DiskCache::kBlock, bytes - at));
}

// Reads from the cache. Missing blocks are downloaded whole, consecutive ones in one request.
void RemoteStorage::read_blocks(const std::string &name, RemoteVersion version, int64_t offset, int64_t length,
                                char *to) {
  const int64_t end = offset + length;
  auto end_of_block = [&](int64_t at) { return std::min((at / DiskCache::kBlock + 1) * DiskCache::kBlock, end); };
  for (int64_t at = offset; at < end;) {
    int64_t next = end_of_block(at);
    char *const here = to + (at - offset);
    if (!from_cache(name, version, at, next - at, here)) {
      const int64_t block = at / DiskCache::kBlock, begin = block * DiskCache::kBlock;
      const Turn turn(*this, hash_of(name) + (uint64_t)block);
      if (!from_cache(name, version, at, next - at, here)) {
        while (next < end && !from_cache(name, version, next, end_of_block(next) - next, to + (next - offset)))
          next = end_of_block(next);
        const int64_t last = (next + DiskCache::kBlock - 1) / DiskCache::kBlock * DiskCache::kBlock;
        const int64_t bytes = std::min(last, version.size) - begin;
        std::unique_ptr<char, decltype(&memory_give)> data((char *)memory_take(bytes), &memory_give);
        if (!data) fail("out of memory: %lld bytes are needed", (long long)bytes);
        keep(name, *ask(name, begin, bytes, data.get()), begin, data.get(), bytes);
        memcpy(here, data.get() + (at - begin), next - at);
      }
    }
    at = next;
  }
}

RemoteStorage::Answer RemoteStorage::ask(const std::string &name, int64_t offset, int64_t length, char *to,
                                         const std::string &unless) {
  RemoteVersion first{0, 0};
  const bool was_known = known(name, &first);
  auto answer = queue_.ask(name, offset, length, to, unless, first.size, counts_, closing_);
  if (answer->is_unchanged) return answer;
  if (!was_known) {
    std::lock_guard<std::shared_mutex> lock(versions_mutex_);
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

// Sets the storage by which scanners in this thread open URLs.
EXPORT void remote_select(RemoteStorage *storage) { RemoteStorage::selected = storage; }
EXPORT_SHORT(remote_select)
// `cache` may be null. Returns null if out of memory.
EXPORT RemoteStorage *remote_create(RemoteQueue *queue, DiskCache *cache) {
  try {
    return new RemoteStorage(*queue, cache);
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
// For the `n` objects of a folder, whose URL ends in a slash. Each name is null-terminated.
EXPORT void remote_know_all(RemoteStorage *storage, const char *folder, const char *names, int64_t n,
                            const int64_t *sizes, const uint64_t *versions) {
  const std::string begin = folder;
  for (int64_t i = 0; i < n; names += strlen(names) + 1, i++) storage->know(begin + names, {sizes[i], versions[i]});
}
EXPORT_LONG(remote_know_all)
// The versions of `n` null-terminated ETags.
EXPORT void remote_versions(const char *tags, int64_t n, uint64_t *versions) {
  for (int64_t i = 0; i < n; tags += strlen(tags) + 1, i++) versions[i] = version_of(tags);
}
EXPORT_SHORT(remote_versions)
// Reads bytes, all of which the object must have. Returns 0, or 1 with the reason in `error`.
EXPORT int32_t remote_read(RemoteStorage *storage, const char *name, int64_t offset, int64_t length, char *to,
                           char *error) {
  try {
    storage->read(name, offset, length, to);
    return 0;
  } catch (const std::exception &e) {
    snprintf(error, kErrorSize, "%s", e.what());
    return 1;
  }
}
EXPORT_LONG(remote_read)
EXPORT void remote_counts(RemoteStorage *storage, RemoteCounts *counts) { *counts = storage->counts(); }
EXPORT_SHORT(remote_counts)
EXPORT void remote_close(RemoteStorage *storage) { storage->close(); }
EXPORT_SHORT(remote_close)
