// SPDX-License-Identifier: Apache-2.0
// CUDA's driver as native code calls it: functions that Python has handed in, all of which return an error code.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/native_time.h"

typedef void *DriverHandle;

struct Driver {
  int (*launch)(DriverHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, DriverHandle,
                void **, void **);
  int (*upload)(uint64_t, const void *, size_t, DriverHandle);
  int (*download)(void *, uint64_t, size_t, DriverHandle);
  int (*record)(DriverHandle, DriverHandle);
  int (*query)(DriverHandle);
  int (*wait)(DriverHandle, DriverHandle, unsigned);
  int (*elapsed)(float *, DriverHandle, DriverHandle);
  int (*synchronize)(DriverHandle);
};

// Valid once a GPU was asked for.
const Driver &driver_calls();

// Counts from its construction to its end as time of the driver, which is part of the native time.
class DriverTime {
 public:
  ~DriverTime() {
    const int64_t ns = NativeTime::now() - begin_;
    NativeTime::total += ns;
    total += ns;
  }
  static thread_local int64_t total;  // nanoseconds

 private:
  const int64_t begin_ = NativeTime::now();
};
