# SPDX-License-Identifier: Apache-2.0
"""Argument types of the CUDA driver functions that driver.py calls; all return an error code."""

from __future__ import annotations

import ctypes

_P, _I, _U, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
FUNCTIONS: dict[str, tuple] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_P,),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDeviceTotalMem_v2": (_P, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuMemAlloc_v2": (_P, _S),
    "cuMemFree_v2": (_P,),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemHostAlloc": (_P, _S, _U),
    "cuMemFreeHost": (_P,),
    "cuMemHostRegister_v2": (_P, _S, _U),
    "cuMemHostUnregister": (_P,),
    "cuMemcpyHtoDAsync_v2": (_P, _P, _S, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _S, _P),
    "cuMemcpyDtoDAsync_v2": (_P, _P, _S, _P),
    "cuMemsetD8Async": (_P, ctypes.c_ubyte, _S, _P),
    "cuCtxGetStreamPriorityRange": (_P, _P),
    "cuStreamCreateWithPriority": (_P, _U, _I),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamSynchronize": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U),
    "cuEventCreate": (_P, _U),
    "cuEventRecord": (_P, _P),
    "cuEventQuery": (_P,),
    "cuEventSynchronize": (_P,),
    "cuEventDestroy_v2": (_P,),
    "cuEventElapsedTime": (_P, _P, _P),
    "cuModuleLoadData": (_P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "cuGetErrorName": (_I, _P),
    "cuGetErrorString": (_I, _P),
}
# Short calls keep the GIL: releasing and reacquiring it takes longer than the call. Those made for each batch go
# through our library, in this order, which measures their time. The last one waits and releases the GIL.
SHORT = ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuEventCreate", "cuEventDestroy_v2")
TIMED = {
    "cuLaunchKernel": "driver_launch",
    "cuMemcpyHtoDAsync_v2": "driver_upload",
    "cuMemcpyDtoHAsync_v2": "driver_download",
    "cuEventRecord": "driver_record",
    "cuEventQuery": "driver_query",
    "cuStreamWaitEvent": "driver_wait",
    "cuEventElapsedTime": "driver_elapsed",
    "cuMemsetD8Async": "driver_fill",
    "cuEventSynchronize": "driver_synchronize",
}
# Functions whose addresses are passed to our library, in the order of `struct Driver`.
NATIVE = (*TIMED, "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
