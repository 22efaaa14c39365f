// SPDX-License-Identifier: Apache-2.0
// Reads a part of the file named by the bytes of in[0] into GPU memory by cuFile, bypassing host memory. Files that
// cuFile does not support are read through the host.
#pragma once
#include "core/tensor.h"

struct GpuFileArgs {
  int64_t to;             // a GPU address
  int64_t offset, bytes;  // of the file
  int64_t loaded;         // host address of the bytes if they were already read, else 0
  // Addresses of functions: cuFileHandleRegister, cuFileHandleDeregister, cuFileRead; cuCtxSetCurrent,
  // cuMemcpyHtoDAsync, cuStreamSynchronize.
  int64_t file_register, file_unregister, file_read;
  int64_t set_context, copy, synchronize;
  int64_t context, stream;  // CUDA handles
};
