// SPDX-License-Identifier: Apache-2.0
#include "read/gpu_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstring>

#include "read/storage.h"

namespace {

// As in cufile.h.
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
constexpr int kDescriptorOfSystem = 1;

typedef Status (*Register)(void **handle, Descriptor *descriptor);
typedef void (*Unregister)(void *handle);
typedef ssize_t (*Read)(void *handle, void *to, size_t bytes, off_t offset, off_t from_to);
typedef int (*SetContext)(void *context);
typedef int (*Copy)(uint64_t to, const void *from, size_t bytes, void *stream);
typedef int (*Synchronize)(void *stream);

template <class F>
F function(int64_t address) {
  return (F)(uintptr_t)address;
}

// A file registered with cuFile; `handle` is null if that failed.
struct Taken {
  int fd;
  void *handle = nullptr;
  const Unregister unregister;
  Taken(const char *path, const GpuFileArgs &a) : unregister(function<Unregister>(a.file_unregister)) {
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_DIRECT);
    if (fd < 0) return;
    Descriptor d{};
    d.type = kDescriptorOfSystem, d.fd = fd;
    if (function<Register>(a.file_register)(&handle, &d).code) handle = nullptr;
  }
  ~Taken() {
    if (handle) unregister(handle);
    if (fd >= 0) close(fd);
  }
};

// Returns whether all was read.
bool read_directly(const char *path, const GpuFileArgs &a) {
  const Taken file(path, a);
  for (int64_t done = 0; file.handle && done < a.bytes;) {
    const ssize_t n =
        function<Read>(a.file_read)(file.handle, (void *)a.to, a.bytes - done, (off_t)(a.offset + done), (off_t)done);
    if (n <= 0) return false;
    done += n;
  }
  return file.handle;
}

void copy(const GpuFileArgs &a, const char *from) {
  int code = function<Copy>(a.copy)((uint64_t)a.to, from, (size_t)a.bytes, (void *)a.stream);
  if (!code) code = function<Synchronize>(a.synchronize)((void *)a.stream);
  if (code) fail("copying to the GPU failed: error %d of CUDA", code);
}

void read_by_host(const char *path, const GpuFileArgs &a, Scratch &scratch) {
  char *content = scratch.array<char>(a.bytes, 1);
  const int64_t n = open_object(path, Storage::kOnce)->read(a.offset, a.bytes, content);
  if (n < a.bytes)
    fail("the file was cut short while it was read: %lld bytes from byte %lld on are wanted, it has %lld",
         (long long)a.bytes, (long long)a.offset, (long long)n);
  copy(a, content);
}

}  // namespace

static void run(const Tensor *, const Tensor *in, const GpuFileArgs &a, Scratch &scratch) {
  if (!a.bytes) return;
  const int64_t n = in->volume();
  char *path = scratch.array<char>(n + 1);
  memcpy(path, in->as<char>(), n);
  path[n] = 0;
  if (const int code = function<SetContext>(a.set_context)((void *)a.context))
    fail("the GPU can't be used: error %d of CUDA", code);
  if (a.loaded) return copy(a, (const char *)a.loaded);
  if (!read_directly(path, a)) read_by_host(path, a, scratch);
}

EXPORT_KERNEL(gpu_file, GpuFileArgs, run)
