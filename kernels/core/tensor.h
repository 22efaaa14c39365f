// SPDX-License-Identifier: Apache-2.0
// One sample in memory, and the data types, as every kernel sees them on the CPU and on the GPU.
#pragma once
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <cmath>
#include <cstdint>
#endif
#ifdef __CUDACC__
#define SHARED __host__ __device__ inline
#else
#define SHARED inline
#endif

// The numbers are those of types.DALIDataType.
enum DType : int32_t { UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FLOAT16, FLOAT, FLOAT64, BOOL };

constexpr int kMaxDims = 8;

// Row-major and dense; shape counts elements.
struct Tensor {
  void *data;
  int64_t shape[kMaxDims];
  int32_t ndim, dtype;
  template <class T>
  SHARED T *as() const {
    return static_cast<T *>(data);
  }
  SHARED int64_t volume() const {
    int64_t v = 1;
    for (int d = 0; d < ndim; d++) v *= shape[d];
    return v;
  }
};

SHARED int64_t item_size(int dtype) {
  switch (dtype) {
    case UINT8:
    case INT8:
    case BOOL:
      return 1;
    case UINT16:
    case INT16:
    case FLOAT16:
      return 2;
    case UINT32:
    case INT32:
    case FLOAT:
      return 4;
    default:
      return 8;
  }
}
