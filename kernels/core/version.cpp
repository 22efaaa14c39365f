// SPDX-License-Identifier: Apache-2.0
#include "core/kernel.h"

// Identifies the sources the library was built from; Python compares it with those it reads its structs from.
EXPORT const char *kernels_digest() { return KERNELS_DIGEST; }

EXPORT int64_t kernel_version() { return kKernelVersion; }
EXPORT_SHORT(kernel_version)
