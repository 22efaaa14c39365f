// SPDX-License-Identifier: Apache-2.0
#include "core/native_time.h"

#include "core/kernel.h"

thread_local int64_t NativeTime::total = 0;
thread_local int NativeTime::depth = 0;
