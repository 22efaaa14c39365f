// SPDX-License-Identifier: Apache-2.0
// How to write the parser of a format. It gets the bytes of one sample, and describes its outputs:
//
//   struct XArgs { ... };                                  in read/x.h: constants of the reader, as of a kernel
//   static void parse(Sample &sample, const XArgs &args);  in read/x.cpp
//   EXPORT_PARSER(x, XArgs, parse)
//
// It reports a sample that can't be parsed with fail("what was given and what is accepted"). All bytes may be wrong:
// check each length before using it. It runs in the thread that read the bytes, for several samples concurrently.
#pragma once
#include <cstring>

#include "core/kernel.h"

// A span of bytes that was read for a sample.
struct Part {
  const char *data;
  int64_t size;
};

class Sample {
 public:
  const int64_t index;      // row in the reader's table
  const int32_t row;        // index in the batch
  const Part *const parts;  // the table's spans for it; a missing one has size 0 and null data
  const int n_parts;
  Scratch &scratch;  // of this thread, until the parser returns

  // An output, to be described: `data`, `shape`, and `ndim` and `dtype` unless the reader has fixed them. `data` points
  // into a part or to memory of `take`. If the reader has fixed the shape, `data` is already allocated, to be written
  // to.
  Tensor &out(int k) { return out_[k * stride_]; }

  // Memory that lives as long as the batch: 64-byte aligned, uninitialized.
  virtual void *take(int64_t bytes) = 0;
  // The length of the object that contains a part, and reading any of its bytes, for formats that need more than the
  // part. Fails if they are missing.
  virtual int64_t object_length(int part) = 0;
  virtual void read(int part, int64_t offset, int64_t length, void *to) = 0;
  // Whether reading the object of a part probably does not block.
  virtual bool is_at_hand(int part) = 0;
  // Only `begun` bytes of the object of a part are at `data`; the consumer reads the rest (unread.h).
  virtual void leave_rest(int part, const void *data, int64_t begun) = 0;

  // Output k is a vector of bytes of the sample, not copied.
  void give(int k, const char *data, int64_t size) {
    Tensor &t = out(k);
    t.data = const_cast<char *>(data), t.ndim = 1, t.shape[0] = size, t.dtype = UINT8;
  }
  // Output k has `bytes` bytes of elements at `data`; its shape and dtype are already set. They are copied only if they
  // are not aligned.
  void give_elements(int k, const char *data, int64_t bytes) {
    Tensor &t = out(k);
    if (!((uintptr_t)data % (uintptr_t)item_size(t.dtype))) {
      t.data = const_cast<char *>(data);
    } else {
      t.data = take(bytes);
      memcpy(t.data, data, bytes);
    }
  }

 protected:
  Sample(int64_t number, int32_t place, const Part *p, int n, Tensor *out, int64_t stride, Scratch &s)
      : index(number), row(place), parts(p), n_parts(n), scratch(s), out_(out), stride_(stride) {}
  ~Sample() = default;

 private:
  Tensor *out_;
  int64_t stride_;
};

typedef int (*Parser)(Sample *sample, const void *args, char *error);

// Exports `parse` under a C name and catches its exceptions: returns 0, or 1 with the reason in `error`. `name_built`
// is like that of EXPORT_KERNEL.
#define EXPORT_PARSER(name, Args, parse)                                                                      \
  extern "C" __attribute__((visibility("default"))) int name(Sample *sample, const void *args, char *error) { \
    try {                                                                                                     \
      parse(*sample, *(const Args *)args);                                                                    \
      return 0;                                                                                               \
    } catch (const std::exception &e) {                                                                       \
      snprintf(error, kErrorSize, "%s", e.what());                                                            \
      return 1;                                                                                               \
    }                                                                                                         \
  }                                                                                                           \
  EXPORT int64_t name##_built() { return (int64_t)sizeof(Args) << 16 | kKernelVersion; }
