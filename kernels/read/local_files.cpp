// SPDX-License-Identifier: Apache-2.0
// Local files. They are read, not mapped: truncating a file meanwhile must be an error of its samples, not a SIGBUS.
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/memory.h"
#include "read/storage.h"
#include "read/url.h"

namespace {

constexpr size_t kMostOpen = 1024;
constexpr int64_t kAlign = 4096, kChunk = 256 * kAlign;  // for direct reads

// strerror_r has two signatures; these select the text for either.
[[maybe_unused]] const char *text_of(int, const char *buffer) { return buffer; }
[[maybe_unused]] const char *text_of(const char *text, const char *) { return text; }

[[noreturn]] void fail_errno(const char *what, int error) {
  char buffer[128] = "";
  const char *text = text_of(strerror_r(error, buffer, sizeof buffer), buffer);
  const char *advice = error == EMFILE ? "; raise the limit on open files (ulimit -n)" : "";
  fail("the file can't be %s: %s (errno %d)%s", what, text, error, advice);
}

struct File : Object {
  int fd;
  bool direct;
  // O_NONBLOCK: opening a named pipe must not wait for its writer; regular files don't care.
  File(const char *path, bool wants_direct) : direct(wants_direct) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    do fd = ::open(path, flags | (direct ? O_DIRECT : 0));
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && direct && errno == EINVAL) {  // not supported, for example by in-memory file systems
      direct = false;
      fd = ::open(path, flags);
    }
    if (fd < 0) error = errno;
  }
  ~File() override {
    if (fd >= 0) close(fd);
  }
  int error = 0;  // why it could not be opened

  int64_t length() override {
    struct stat info;
    if (fstat(fd, &info)) fail_errno("examined", errno);
    if (S_ISDIR(info.st_mode)) fail("this is a directory, not a file");
    if (!S_ISREG(info.st_mode)) fail("this is a device, pipe or socket, not a regular file");
    return info.st_size;
  }
  int64_t length_at_first() override {
    int64_t known = at_first_.load(std::memory_order_relaxed);
    if (known < 0) at_first_.store(known = length(), std::memory_order_relaxed);
    return known;
  }
  int64_t read(int64_t offset, int64_t length, char *to) override {
    if (direct) return read_direct(offset, length, to);
    int64_t done = 0;
    while (done < length) {
      const int64_t n = some(to + done, length - done, offset + done);
      if (!n) break;
      done += n;
    }
    return done;
  }
  bool is_at_hand() override {
#if defined(RWF_NOWAIT)
    // Files usually enter and leave the cache as a whole, so two bytes represent all.
    char byte;
    const iovec one = {&byte, 1};
    const int64_t size = length_at_first();
    auto has = [&](int64_t at) { return preadv2(fd, &one, 1, at, RWF_NOWAIT) == 1; };
    return !direct && size && has(size / 2) && has(size - 1);
#else
    return false;
#endif
  }

 private:
  int64_t some(char *to, int64_t length, int64_t offset) {
    for (;;) {
      const ssize_t n = pread(fd, to, length, offset);
      if (n >= 0) return n;
      if (errno != EINTR) fail_errno("read", errno);
    }
  }
  std::atomic<int64_t> at_first_{-1};
  // Reads via aligned memory: direct reads can't use the pool's blocks or the unaligned ends of files.
  int64_t read_direct(int64_t offset, int64_t length, char *to) {
    std::unique_ptr<char, decltype(&std::free)> chunk((char *)std::aligned_alloc(kAlign, kChunk), std::free);
    if (!chunk) throw std::bad_alloc();
    int64_t done = 0;
    while (done < length) {
      const int64_t skip = (offset + done) % kAlign;
      const int64_t n = some(chunk.get(), kChunk, offset + done - skip) - skip;
      if (n <= 0) break;
      memcpy(to + done, chunk.get() + skip, std::min(n, length - done));
      done += std::min(n, length - done);
    }
    return done;
  }
};

// Keeps recently read files open.
class LocalFiles : public Storage {
 public:
  LocalFiles() {
    if (const size_t share = share_of_open_files()) most_ = std::clamp<size_t>(share, 8, kMostOpen);
  }
  std::shared_ptr<Object> open(const char *name, Way way) override {
    if (way != kKept) return checked(name, way == kDirect);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = places_.find(name);
      if (found != places_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return found->second->second;
      }
    }
    std::shared_ptr<Object> file = checked(name, false);
    std::shared_ptr<Object> old;  // closed after the lock is released
    std::lock_guard<std::mutex> lock(mutex_);
    if (places_.count(name)) return file;  // another thread was faster
    recent_.emplace_front(name, file);
    places_[name] = recent_.begin();
    if (recent_.size() > most_) old = forget_oldest();
    return file;
  }

 private:
  std::shared_ptr<File> checked(const char *name, bool direct) {
    auto file = std::make_shared<File>(name, direct);
    while ((file->error == EMFILE || file->error == ENFILE) && make_room()) file = std::make_shared<File>(name, direct);
    if (file->error) fail_errno("opened", file->error);
    return file;
  }
  bool make_room() {
    std::shared_ptr<Object> old;
    std::lock_guard<std::mutex> lock(mutex_);
    if (recent_.empty()) return false;
    old = forget_oldest();
    return true;
  }
  std::shared_ptr<Object> forget_oldest() {
    auto old = std::move(recent_.back().second);
    places_.erase(recent_.back().first);
    recent_.pop_back();
    return old;
  }
  typedef std::list<std::pair<std::string, std::shared_ptr<Object>>> Recent;
  std::mutex mutex_;
  Recent recent_;  // most recently used first
  std::unordered_map<std::string, Recent::iterator> places_;
  size_t most_ = 64;
};

}  // namespace

size_t share_of_open_files() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY) return 0;
  size_t open = 0;
  struct stat folder;
  if (!stat("/proc/self/fd", &folder) && folder.st_size > 0) {
    open = (size_t)folder.st_size;  // since Linux 6.2; listing them takes a millisecond per 1000
  } else if (DIR *const listed = opendir("/proc/self/fd")) {
    while (readdir(listed)) open++;  // includes "." and ".."
    closedir(listed);
  }
  return limit.rlim_cur > open + 4 ? (limit.rlim_cur - open) / 4 : 1;
}

std::unique_ptr<Storage> local_files() { return std::make_unique<LocalFiles>(); }

std::shared_ptr<Object> open_object(const char *name, Storage::Way way) {
  if (is_url(name)) return open_remote(name, way);
  auto file = std::make_shared<File>(name, way == Storage::kDirect);
  if (file->error) fail_errno("opened", file->error);
  return file;
}

Content Object::whole(bool allow_empty) {
  const int64_t size = length();
  if (!size && !allow_empty) fail("the file is empty");
  std::unique_ptr<char, decltype(&memory_give)> block((char *)memory_take(size ? size : 1), memory_give);
  if (!block) fail("out of memory: the file has %lld bytes", (long long)size);
  const int64_t n = read(0, size, block.get());
  if (n < size) fail("the file shrank from %lld to %lld bytes while it was read", (long long)size, (long long)n);
  return {block.release(), size};
}
