// SPDX-License-Identifier: Apache-2.0
// How the parser of a format is written. It gets the bytes of one sample, and describes its outputs:
//
//   struct XArgs { ... };                                  in read/x.h: constants of the reader, as of a kernel
//   static void parse(Sample &sample, const XArgs &args);  in read/x.cpp
//   EXPORT_PARSER(x, XArgs, parse)
//
// It reports a sample that can't be parsed with fail("what was got and what is accepted"). Everything in the bytes may
// be wrong: each length is to be checked before it is used. It runs in the thread that read the bytes, and for several
// samples at once.
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
  const int64_t index;      // its number in the reader's table
  const int32_t row;        // its place in the batch
  const Part *const parts;  // the spans that the table has for it; a missing one has no bytes and no data
  const int n_parts;
  Scratch &scratch;  // of this thread, until the parser returns

  // An output, to be described: `data`, `shape`, and `ndim` and `dtype` unless the reader has fixed them. `data` points
  // into a part or to memory of `take`. Where the reader has fixed the shape, `data` is there already, to be written
  // to.
  Tensor &out(int k) { return out_[k * stride_]; }

  // Memory that lives as long as the batch: 64-byte aligned, its content undefined.
  virtual void *take(int64_t bytes) = 0;
  // The length of the object that a part lies in, and bytes from anywhere in it, for what only the bytes of the part
  // tell. Fails if they are not there.
  virtual int64_t object_length(int part) = 0;
  virtual void read(int part, int64_t offset, int64_t length, void *to) = 0;
  // Whether reading the object that a part lies in most likely waits for nothing.
  virtual bool is_at_hand(int part) = 0;
  // Only `begun` bytes of the object that a part lies in are at `data`; who takes them reads on (unread.h).
  virtual void leave_rest(int part, const void *data, int64_t begun) = 0;

  // Output k is a vector of bytes of the sample, where they are.
  void give(int k, const char *data, int64_t size) {
    Tensor &t = out(k);
    t.data = const_cast<char *>(data), t.ndim = 1, t.shape[0] = size, t.dtype = UINT8;
  }
  // Output k are `bytes` of elements of some type at `data`, whose shape is described already: where they are if they
  // are aligned, else a copy.
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

// Gives `parse` a C name and keeps exceptions on this side of it: 0, or 1 with the reason in `error`. `name_built` is
// that of EXPORT_KERNEL.
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
