// SPDX-License-Identifier: Apache-2.0
// How a CPU kernel is written. A kernel handles one sample:
//
//   static void run(const Tensor *out, const Tensor *in, const XArgs &args, Scratch &scratch);
//   EXPORT_KERNEL(x, XArgs, run)
//
// out[0..] and in[0..] are its tensors, args its row of arguments, scratch thread-local memory that lives until it
// returns. It reports a sample it can't handle with fail("what was given and what is accepted"). A kernel whose
// operator `shortens` outputs takes `Tensor *out`, and sets shape[0] of each to the part it has written.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

#include "core/convert.h"
#include "core/export.h"
#include "core/sanitize.h"
#include "core/tensor.h"

// Memory of one thread that grows to the largest request and is kept between samples.
class Scratch {
 public:
  static constexpr int kParts = 4;
  // 64-byte aligned; the parts are independent, the content undefined.
  void *get(int64_t bytes, int part = 0) {
    Block &b = blocks_[part];
    if (bytes > b.size) {
      std::free(b.data);
      b.size = 0;
      b.data = std::aligned_alloc(64, (bytes + 4095) / 4096 * 4096);
      if (!b.data) throw std::bad_alloc();
      b.size = (bytes + 4095) / 4096 * 4096;
    }
    handed_out(b.data, bytes, b.size);
    return b.data;
  }
  template <class T>
  T *array(int64_t n, int part = 0) {
    void *data = get(n * (int64_t)sizeof(T), part);
    undefined(data, n * (int64_t)sizeof(T));
    return static_cast<T *>(data);
  }
  // Frees what an exceptionally large sample made grow.
  void trim(int64_t keep) {
    for (Block &b : blocks_)
      if (b.size > keep) std::free(b.data), b = Block{};
  }
  bool is_output_large = false;  // the outputs of all samples exceed the caches: see core/stream.h
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  ~Scratch() { trim(-1); }

 private:
  struct Block {
    void *data = nullptr;
    int64_t size = -1;
  };
  Block blocks_[kParts];
};

constexpr int kErrorSize = 256;
typedef int (*Kernel)(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

[[noreturn]] inline void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] inline void fail(const char *format, ...) {
  char text[kErrorSize];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  throw std::runtime_error(text);
}

// Calls f with a value of the C++ type of `dtype`, if it is one of Types.
template <class... Types, class F>
void for_types(int dtype, F f) {
  bool found = ((dtype == DTypeOf<Types>::value && (f(Types{}), true)) || ...);
  if (!found) fail("[internal error] no kernel for data type %d", dtype);
}
template <class F>
void for_any_dtype(int dtype, F f) {
  for_types<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, half, float, double, bool>(dtype,
                                                                                                                 f);
}

// The interface between Python and kernel libraries: increases with every change of Tensor, Scratch or Kernel.
constexpr int64_t kKernelVersion = 1;

// Exports `run` under a C name and catches its exceptions: returns 0, or 1 with the reason in `error`. `name_built`
// tells Python what it was built for.
#define EXPORT_KERNEL(name, Args, run)                                                                        \
  extern "C" __attribute__((visibility("default"))) int name(Tensor *out, const Tensor *in, const void *args, \
                                                             Scratch *scratch, char *error) {                 \
    try {                                                                                                     \
      run(out, in, *(const Args *)args, *scratch);                                                            \
      return 0;                                                                                               \
    } catch (const std::exception &e) {                                                                       \
      snprintf(error, kErrorSize, "%s", e.what());                                                            \
      return 1;                                                                                               \
    }                                                                                                         \
  }                                                                                                           \
  EXPORT int64_t name##_built() { return (int64_t)sizeof(Args) << 16 | kKernelVersion; }

// Compiles a loop for several instruction sets, chosen at load time; only code inlined into it benefits.
#if !defined(CLONES)
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif
#endif
