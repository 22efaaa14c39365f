// SPDX-License-Identifier: Apache-2.0
// Functions of the CUDA driver. This library does not link it: Python passes in their addresses.
#pragma once
#include <cstddef>

#include "core/native_time.h"

struct Driver {
  typedef void *Handle;
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
  int (*upload)(uint64_t, const void *, size_t, Handle);
  int (*download)(void *, uint64_t, size_t, Handle);
  int (*record)(Handle, Handle);
  int (*query)(Handle);
  int (*wait)(Handle, Handle, unsigned);
  int (*elapsed)(float *, Handle, Handle);
  int (*fill)(uint64_t, unsigned char, size_t, Handle);
  int (*synchronize)(Handle);
  int (*push)(Handle);  // a context
  int (*pop)(Handle *);
};
extern Driver driver;

// CPU time in ns that this thread has spent in the driver; included in `NativeTime`.
struct DriverTime {
  static thread_local int64_t spent;
};

template <class Call>
int timed(Call call) {
  const int64_t before = NativeTime::total;
  int code;
  {
    NativeTime time;
    code = call();
  }
  DriverTime::spent += NativeTime::total - before;
  return code;
}
