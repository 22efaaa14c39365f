// SPDX-License-Identifier: Apache-2.0
#include "read/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/export.h"
#include "core/kernel.h"
#include "read/crc32c.h"
#include "read/storage.h"

namespace {

constexpr int64_t kChunk = 16 << 10;  // bytes per checksum
constexpr int kChunks = DiskCache::kBlock / kChunk, kFolders = 256;
constexpr size_t kTagSize = 104;
// Seconds: a file's modification time is updated only if it is older. Files stay open at most for as long, because
// those that another process deletes occupy the disk until they are closed.
constexpr time_t kFresh = 60;
constexpr size_t kMostOpen = 4096;
constexpr time_t kAbandoned = 15 * 60;  // seconds; older unfinished files were left by a killed process
constexpr char kMagic[8] = {'p', 'e', 'n', 's', 't', 'k', '0', '5'};
constexpr char kUnfinished[] = ".unfinished";

// Written behind the data: these then lie in the system's cache as those of a plain file do, and are read as fast.
struct Footer {
  char magic[8];
  uint64_t check;  // Name::check
  int64_t object_size;
  uint64_t version;
  int64_t bytes;          // of data
  char tag[kTagSize];     // ETag, null-terminated
  uint32_t sum[kChunks];  // of each chunk
  uint32_t footer_sum;    // CRC-32C of all fields above
};

class File {
 public:
  File(const char *path, int flags) : fd(::open(path, flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File &) = delete;
  const int fd;
};

bool read_all(int fd, void *to, int64_t bytes, int64_t offset) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd, (char *)to + done, bytes - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

// In one call if possible: the system's cache then holds them in larger pieces, which are read faster.
bool write_both(int fd, const void *data, size_t size, const void *behind, size_t behind_size) {
  iovec left[] = {{const_cast<void *>(data), size}, {const_cast<void *>(behind), behind_size}};
  while (left[0].iov_len || left[1].iov_len) {
    const ssize_t n = ::writev(fd, left, 2);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (!n) errno = EIO;
      return false;
    }
    size_t done = (size_t)n;
    for (iovec &part : left) {
      const size_t here = std::min(done, part.iov_len);
      part.iov_base = (char *)part.iov_base + here, part.iov_len -= here, done -= here;
    }
  }
  return true;
}

// Takes less than half the time of CRC-32C: sums of 32-bit words and sums of these sums, each for 16 columns of words,
// are folded into 32 bits. No sum overflows, so any change of one or two words changes a sum. Uses vector types because
// compilers keep the sums of plain loops in memory, which takes seven times as long.
typedef uint64_t Words __attribute__((vector_size(32)));

CLONES uint32_t checksum(const char *data, int64_t bytes) {
  constexpr int kVectors = 2, kLanes = sizeof(Words) / sizeof(uint64_t), kStep = kVectors * sizeof(Words);
  Words low[kVectors] = {}, high[kVectors] = {}, lows[kVectors] = {}, highs[kVectors] = {};
  const auto add = [&](const char *from) __attribute__((always_inline)) {
    for (int v = 0; v < kVectors; v++) {
      Words words;
      memcpy(&words, from + v * sizeof words, sizeof words);
      low[v] += words & 0xffffffffu, high[v] += words >> 32;
      lows[v] += low[v], highs[v] += high[v];
    }
  };
  int64_t i = 0;
  for (; i + kStep <= bytes; i += kStep) add(data + i);
  char rest[kStep] = {};
  memcpy(rest, data + i, bytes - i);
  add(rest);
  uint64_t h = (uint64_t)bytes;
  for (const auto *sums : {low, high, lows, highs})
    for (int l = 0; l < kVectors * kLanes; l++)
      h = (h ^ sums[l / kLanes][l % kLanes]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  return (uint32_t)(h ^ h >> 32);
}

bool is_sound(const Footer &h, uint64_t check) {
  return !memcmp(h.magic, kMagic, sizeof kMagic) && h.check == check &&
         h.footer_sum == crc32c(&h, offsetof(Footer, footer_sum)) && h.bytes >= 0 && h.bytes <= DiskCache::kBlock &&
         !h.tag[kTagSize - 1];
}

uint64_t mixed(uint64_t h) {
  for (int i = 0; i < 2; i++) h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
  return h ^ h >> 32;
}

int64_t sum_of(int64_t bytes, int64_t i) { return std::min(kChunk, bytes - i * kChunk); }

}  // namespace

struct DiskCache::Block {
  File file;
  Footer h;
  explicit Block(const char *path) : file(path, O_RDONLY) {}
};

DiskCache::DiskCache(const char *folder, int64_t most_bytes)
    : folder_(folder), most_bytes_(most_bytes), until_look_(0), most_open_(kMostOpen) {
  if (const size_t share = share_of_open_files()) most_open_ = std::min(share, kMostOpen);
}
DiskCache::~DiskCache() = default;

// Users, passwords and signatures are excluded: if they lead to different content, its version differs.
DiskCache::Name DiskCache::name_of(const std::string &url, int64_t block) {
  Name name{mixed((uint64_t)block), mixed(~(uint64_t)block)};
  const auto add = [&](uint64_t word) { name = {mixed(name.file ^ word), mixed(name.check ^ word)}; };
  const UrlParts parts = parts_without_secrets(url);
  for (const std::string_view part : {parts.scheme, parts.rest}) {
    for (size_t i = 0; i < part.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      memcpy(&word, part.data() + i, std::min(part.size() - i, sizeof word));
      add(word);
    }
    add(part.size());
  }
  return name;
}

std::string DiskCache::path_of(const Name &name) const {
  char text[40];
  snprintf(text, sizeof text, "/%02x/%016llx", (int)(name.file % kFolders), (unsigned long long)name.file);
  return folder_ + text;
}

// Null if there is no valid file.
std::shared_ptr<const DiskCache::Block> DiskCache::open_anew(const Name &name) const {
  auto block = std::make_shared<Block>(path_of(name).c_str());
  const int fd = block->file.fd;
  struct stat info;
  if (fd < 0 || fstat(fd, &info)) return nullptr;
  const int64_t bytes = (int64_t)info.st_size - (int64_t)sizeof(Footer);
  if (bytes < 0 || !read_all(fd, &block->h, sizeof(Footer), bytes)) return nullptr;
  if (!is_sound(block->h, name.check) || block->h.bytes != bytes) return nullptr;
  if (info.st_mtime < time(nullptr) - kFresh) futimens(fd, nullptr);
  return block;
}

// Null if this version is not cached. An open file of another version is opened again, as it may have been replaced
// meanwhile. At the limit on open files, those that are open stay open: when files are read in turn, the most recently
// read one is needed last.
std::shared_ptr<const DiskCache::Block> DiskCache::open(const Name &name, RemoteVersion version) {
  const auto is_wanted = [&](const Block &b) {
    return b.h.check == name.check && b.h.version == version.version && b.h.object_size == version.size;
  };
  const time_t period = time(nullptr) / kFresh;
  {
    decltype(open_) old;  // closed after the lock is released
    std::lock_guard<std::mutex> lock(open_mutex_);
    if (period != open_period_) old.swap(open_), open_period_ = period;
    const auto found = open_.find(name.file);
    if (found != open_.end() && is_wanted(*found->second)) return found->second;
  }
  auto block = open_anew(name);
  if (!block || !is_wanted(*block)) return nullptr;
  std::lock_guard<std::mutex> lock(open_mutex_);
  if (open_.size() < most_open_ || open_.count(name.file)) open_[name.file] = block;
  return block;
}

void DiskCache::forget(const Name &name) {
  std::lock_guard<std::mutex> lock(open_mutex_);
  open_.erase(name.file);
}

void DiskCache::close_all() {
  std::lock_guard<std::mutex> lock(open_mutex_);
  open_.clear();
}

bool DiskCache::read(const std::string &url, int64_t number, RemoteVersion version, int64_t offset, int64_t length,
                     char *to) {
  const Name name = name_of(url, number);
  const auto block = open(name, version);
  if (!block) return false;
  const Footer &h = block->h;
  if (length > h.bytes - offset) return false;
  const int64_t first = offset / kChunk, last = (offset + length + kChunk - 1) / kChunk;
  const int64_t begin = first * kChunk, end = std::min(last * kChunk, h.bytes);
  const bool is_whole = begin == offset && end == offset + length;
  std::unique_ptr<char[]> around(is_whole ? nullptr : new char[end - begin]);
  char *const data = is_whole ? to : around.get();
  bool is_right = read_all(block->file.fd, data, end - begin, begin);
  for (int64_t i = first; i < last && is_right; i++)
    is_right = checksum(data + (i - first) * kChunk, sum_of(h.bytes, i)) == h.sum[i];
  if (!is_right) return forget(name), false;
  if (!is_whole) memcpy(to, data + (offset - begin), length);
  return true;
}

bool DiskCache::find(const std::string &url, RemoteVersion *version, std::string *tag) {
  const auto block = open_anew(name_of(url, 0));
  if (!block || !*block->h.tag) return false;
  *version = {block->h.object_size, block->h.version}, *tag = block->h.tag;
  return true;
}

void DiskCache::write(const std::string &url, int64_t block, RemoteVersion version, const std::string &tag,
                      const char *data, int64_t bytes) {
  if (!writes_ || bytes > kBlock || !make_room()) return;
  const Name name = name_of(url, block);
  const std::string path = path_of(name);
  Footer h{};
  h.check = name.check;
  memcpy(h.magic, kMagic, sizeof kMagic);
  h.object_size = version.size, h.version = version.version, h.bytes = bytes;
  if (tag.size() < kTagSize) memcpy(h.tag, tag.data(), tag.size());
  for (int64_t i = 0; i * kChunk < bytes; i++) h.sum[i] = checksum(data + i * kChunk, sum_of(bytes, i));
  h.footer_sum = crc32c(&h, offsetof(Footer, footer_sum));
  static std::atomic<uint64_t> number{0};
  const std::string unfinished = path + "." + std::to_string(getpid()) + "." + std::to_string(number++) + kUnfinished;
  int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT) {
    for (const std::string &folder : {folder_, path.substr(0, path.rfind('/'))})
      if (mkdir(folder.c_str(), 0777) && errno != EEXIST) return give_up("made", errno);
    fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (fd < 0) return give_up("written to", errno);
  const bool written = write_both(fd, data, (size_t)bytes, &h, sizeof h);
  int error = written ? 0 : errno;
  if (::close(fd) && !error) error = errno;
  if (!error && rename(unfinished.c_str(), path.c_str())) error = errno;
  if (error) {
    unlink(unfinished.c_str());
    return give_up("written to", error);
  }
  forget(name);
  until_look_ -= (int64_t)sizeof h + bytes;
}

void DiskCache::give_up(const char *doing, int error) {
  if (writes_.exchange(false))
    fprintf(stderr, "penstock: the cache %s can't be %s (%s): nothing more is kept there\n", folder_.c_str(), doing,
            strerror(error));
}

// Lists the folder only after some bytes were written. A running total would be wrong, as other processes write and
// delete files as well.
bool DiskCache::make_room() {
  if (!most_bytes_ || until_look_ > 0) return true;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;  // another thread does
  mkdir(folder_.c_str(), 0777);
  const File busy((folder_ + "/lock").c_str(), O_RDWR | O_CREAT);
  if (busy.fd < 0) return give_up("written to", errno), false;
  do {  // again if other threads wrote as much meanwhile: nobody may write after them
    until_look_ = std::max<int64_t>(most_bytes_ / 32, 1);
    if (flock(busy.fd, LOCK_EX | LOCK_NB)) return true;  // another process does
    delete_oldest();
  } while (until_look_ <= 0);
  return true;
}

void DiskCache::delete_oldest() {
  struct Kept {
    timespec read;
    int64_t bytes;
    std::string path;
    bool operator<(const Kept &o) const {
      return read.tv_sec != o.read.tv_sec ? read.tv_sec < o.read.tv_sec : read.tv_nsec < o.read.tv_nsec;
    }
  };
  std::vector<Kept> all;
  int64_t total = 0;
  for (int i = 0; i < kFolders; i++) {
    char name[8];
    snprintf(name, sizeof name, "/%02x/", i);
    const std::string folder = folder_ + name;
    DIR *const listed = opendir(folder.c_str());
    if (!listed) continue;
    while (const dirent *entry = readdir(listed)) {
      struct stat info;
      if (fstatat(dirfd(listed), entry->d_name, &info, 0) || !S_ISREG(info.st_mode)) continue;
      const std::string path = folder + entry->d_name;
      if (strstr(entry->d_name, kUnfinished)) {
        if (info.st_mtime < time(nullptr) - kAbandoned) unlink(path.c_str());
        continue;
      }
      total += info.st_size;
      all.push_back({info.st_mtim, (int64_t)info.st_size, path});
    }
    closedir(listed);
  }
  const int64_t enough = most_bytes_ - most_bytes_ / 16;
  if (total > enough) {
    std::sort(all.begin(), all.end());
    for (const Kept &k : all) {
      if (total <= enough) break;
      if (!unlink(k.path.c_str())) total -= k.bytes;
    }
    close_all();
  }
}

// The cache lives until the process ends. Returns null if out of memory.
EXPORT DiskCache *disk_cache_create(const char *folder, int64_t most_bytes) {
  try {
    return new DiskCache(folder, most_bytes);
  } catch (const std::exception &) {
    return nullptr;
  }
}
EXPORT_SHORT(disk_cache_create)
