// SPDX-License-Identifier: Apache-2.0
// Part of the file named by the bytes of in[0], read into the memory of a GPU by cuFile, past that of the host. A file
// that cuFile does not take goes by way of the host.
#pragma once
#include "core/tensor.h"

struct GpuFileArgs {
  int64_t to;             // an address of the GPU
  int64_t offset, bytes;  // of the file
  int64_t loaded;         // where the bytes lie on the host if they were read already, else 0
  // Addresses of functions: cuFileHandleRegister, cuFileHandleDeregister, cuFileRead; cuCtxSetCurrent,
  // cuMemcpyHtoDAsync, cuStreamSynchronize.
  int64_t file_register, file_unregister, file_read;
  int64_t set_context, copy, synchronize;
  int64_t context, stream;  // handles of CUDA
};
