// SPDX-License-Identifier: Apache-2.0
#include "read/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/memory.h"

namespace {

// strerror_r comes in two forms; these pick the text from whichever the C library has.
[[maybe_unused]] const char *text_of(int, const char *buffer) { return buffer; }
[[maybe_unused]] const char *text_of(const char *text, const char *) { return text; }

[[noreturn]] void fail_errno(const char *what, int error) {
  char buffer[128] = "";
  const char *text = text_of(strerror_r(error, buffer, sizeof buffer), buffer);
  const char *advice = error == EMFILE ? "; raise the limit on open files (ulimit -n)" : "";
  fail("the file can't be %s: %s (errno %d)%s", what, text, error, advice);
}

struct File {
  int fd;
  bool direct;
  // O_NONBLOCK: opening a named pipe must not wait for its writer; regular files don't care.
  File(const char *path, bool wants_direct) : direct(wants_direct) {
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (direct ? O_DIRECT : 0));
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && direct && errno == EINVAL) {  // a file system without it, as those in memory are
      direct = false;
      fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd < 0) fail_errno("opened", errno);
  }
  ~File() { close(fd); }
};

struct Block {
  char *data;
  explicit Block(int64_t bytes) : data((char *)memory_take(bytes)) {
    if (!data) fail("out of memory: the file has %lld bytes", (long long)bytes);
  }
  ~Block() {
    if (data) memory_give(data);
  }
};

// Reads, not maps: a file that is cut short meanwhile must be an error, not a SIGBUS.
void read_whole(int fd, char *data, int64_t size) {
  for (int64_t done = 0; done < size;) {
    ssize_t n = read(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("read", errno);
    if (n == 0) fail("the file shrank from %lld to %lld bytes while it was read", (long long)size, (long long)done);
    done += n;
  }
}

// By way of aligned memory: neither the pool's blocks nor the ends of files are as direct reads want them.
void read_direct(int fd, char *data, int64_t size, Scratch &scratch) {
  constexpr int64_t kAlign = 4096, kChunk = 256 * kAlign;
  char *raw = scratch.array<char>(kChunk + kAlign, 1);
  char *chunk = raw + (kAlign - (uintptr_t)raw % kAlign) % kAlign;
  for (int64_t done = 0; done < size;) {
    ssize_t n = read(fd, chunk, kChunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("read", errno);
    if (n == 0) fail("the file shrank from %lld to %lld bytes while it was read", (long long)size, (long long)done);
    n = n < size - done ? n : size - done;
    memcpy(data + done, chunk, n);
    done += n;
  }
}

const char *full_path(const WholeFileArgs &a, const Tensor *in, Scratch &scratch) {
  if (!a.path) {
    const int64_t n = in->volume();
    char *path = scratch.array<char>(n + 1);
    memcpy(path, in->as<char>(), n);
    path[n] = 0;
    if (!*path) fail("the path is empty");
    return path;
  }
  const char *root = (const char *)a.root, *path = (const char *)a.path;
  if (*path == '/' || !*root) return path;
  size_t n = strlen(root), m = strlen(path) + 1;
  char *full = scratch.array<char>(n + m);
  memcpy(full, root, n);
  memcpy(full + n, path, m);
  return full;
}

void run(const Tensor *out, const Tensor *in, const WholeFileArgs &a, Scratch &scratch) {
  Tensor *result = out[0].as<Tensor>();
  File file(full_path(a, in, scratch), a.direct);
  struct stat info;
  if (fstat(file.fd, &info)) fail_errno("examined", errno);
  if (S_ISDIR(info.st_mode)) fail("this is a directory, not a file");
  if (!S_ISREG(info.st_mode)) fail("this is a device, pipe or socket, not a regular file");
  if (info.st_size == 0 && !a.allow_empty) fail("the file is empty");
  Block block(info.st_size ? info.st_size : 1);
  if (file.direct)
    read_direct(file.fd, block.data, info.st_size, scratch);
  else
    read_whole(file.fd, block.data, info.st_size);
  result->data = block.data;
  result->shape[0] = info.st_size;
  block.data = nullptr;
}

}  // namespace

EXPORT_KERNEL(whole_file, WholeFileArgs, run)
