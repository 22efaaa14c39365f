// SPDX-License-Identifier: Apache-2.0
// cuFile for the emulated device, whose memory is the host's: what https://docs.nvidia.com/gpudirect-storage describes
// of the functions that are used. It reads in small pieces, as a call may read less than was asked for; it takes no
// file whose size is odd, and reads none whose first byte is 'X'.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Status {
  int code, cuda;
};
struct Descriptor {
  int type;
  union {
    int fd;
    void *handle;
  };
  const void *operations;
};
struct Properties {
  unsigned major, minor;
  size_t poll_threshold, max_direct_io;
  unsigned supported, control, features, sizes[5];
};
struct Handle {
  int fd;
};

constexpr int kNotInitialised = 5001, kInvalid = 5022, kUnsupported = 5027;
constexpr size_t kMost = 1000;
std::atomic<int64_t> bytes_read{0};
std::atomic<int> open_handles{0};
std::atomic<bool> is_open{false};

}  // namespace

extern "C" {

Status cuFileDriverOpen() {
  if (getenv("STUB_CUFILE_FAILS")) return {kNotInitialised, 0};
  is_open = true;
  return {0, 0};
}

Status cuFileDriverGetProperties(Properties *p) {
  memset(p, 0, sizeof *p);
  p->major = 2, p->minor = 17;
  if (!getenv("STUB_CUFILE_BY_HOST")) p->supported = 1 << 4 | 1 << 6;
  return {0, 0};
}

Status cuFileHandleRegister(void **handle, Descriptor *d) {
  struct stat info;
  if (!is_open) return {kNotInitialised, 0};
  if (d->type != 1 || d->operations || !(fcntl(d->fd, F_GETFL) & O_DIRECT) || fstat(d->fd, &info)) return {kInvalid, 0};
  if (info.st_size % 2) return {kUnsupported, 0};
  *handle = new Handle{open(("/proc/self/fd/" + std::to_string(d->fd)).c_str(), O_RDONLY)};
  open_handles++;
  return {0, 0};
}

void cuFileHandleDeregister(void *handle) {
  close(((Handle *)handle)->fd);
  delete (Handle *)handle;
  open_handles--;
}

ssize_t cuFileRead(void *handle, void *base, size_t size, off_t file_offset, off_t memory_offset) {
  char first = 0;
  const int fd = ((Handle *)handle)->fd;
  if (pread(fd, &first, 1, 0) == 1 && first == 'X') return -5;
  const ssize_t n = pread(fd, (char *)base + memory_offset, std::min(size, kMost), file_offset);
  if (n > 0) bytes_read += n;
  return n;
}

int64_t stub_bytes_read() { return bytes_read.exchange(0); }
int stub_open_handles() { return open_handles; }
}
