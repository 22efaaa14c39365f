# SPDX-License-Identifier: Apache-2.0
"""Equivalents of DALI's native module: containers of batches, lists of operators, settings of its memory."""

from __future__ import annotations

import warnings
from typing import Any

from . import types
from .core.capsules import is_capsule, is_on_gpu, is_spent
from .core.kernels import library
from .registry.composing import cpu_ops, gpu_ops, mixed_ops
from .registry.op_schema import GetSchema, OpSchema, TryGetSchema
from .tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__path__: list[str] = []  # makes it a package, as programs import `nvidia.dali.backend_impl.types`
__all__ = [
    "GetSchema",
    "OpSchema",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "TryGetSchema",
    "types",
]
__cuda_version__ = 13492  # value of DALI 2.4.0 for CUDA 13, for programs that compare it; penstock needs no toolkit


def deprecation_warning(what: str) -> None:
    """Warns that something is deprecated."""
    warnings.warn(what, DeprecationWarning, stacklevel=2)


def check_cuda_runtime() -> None:
    """Does nothing: operations that need CUDA raise an error without it."""


def CheckDLPackCapsule(ptr: Any) -> tuple[bool, bool]:
    """Returns whether an object is a DLPack capsule, and whether its data is on a GPU. Raises RuntimeError for a
    capsule whose tensor was already taken."""
    if not is_capsule(ptr):
        return False, False
    if is_spent(ptr):
        raise RuntimeError("invalid DLPack tensor capsule: a tensor can be taken only once")
    return True, is_on_gpu(ptr)


def GetCUDADeviceCount() -> int:
    """Returns the number of GPUs; 0 without a driver."""
    from .gpu.driver import device_count

    try:
        return device_count()
    except (OSError, RuntimeError):
        return 0


def GetCudaVersion() -> int:
    """Returns the CUDA version of the driver, such as 13000; 0 without a driver."""
    from .gpu.driver import driver_version

    try:
        major, minor = driver_version().split(".")
        return 1000 * int(major) + 10 * int(minor)
    except (OSError, RuntimeError):
        return 0


def IsDriverInitialized() -> bool:
    """Returns whether this process has used a GPU."""
    from .gpu.driver import was_used

    return was_used()


def RegisteredCPUOps() -> list[str]:
    """Returns the names of the operators that run on the CPU."""
    return sorted(cpu_ops())


def RegisteredGPUOps() -> list[str]:
    """Returns the names of the operators that run on the GPU."""
    return sorted(gpu_ops())


def RegisteredMixedOps() -> list[str]:
    """Returns the names of the operators that take data on the CPU and return data on the GPU."""
    return sorted(mixed_ops())


def ReleaseUnusedMemory() -> None:
    """Returns unused memory in the pools of host and GPUs to the system. Pipelines may be running; they allocate new
    memory when they need it."""
    from .gpu.driver import was_used
    from .gpu.memory import give_back_all

    library().memory_trim(0)
    if was_used():
        give_back_all()


def _without_effect(name: str, doc: str, result: Any = None) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


Init = _without_effect("Init", "Has no effect: no initialisation is needed.")
PreallocateDeviceMemory = _without_effect("PreallocateDeviceMemory", "Has no effect: memory comes from a pool.")
PreallocatePinnedMemory = _without_effect("PreallocatePinnedMemory", "Has no effect: memory comes from a pool.")
RestrictPinnedMemUsage = _without_effect("RestrictPinnedMemUsage", "Without effect.", False)
SetBufferGrowthFactor = _without_effect("SetBufferGrowthFactor", "Has no effect: memory comes from a pool.")
SetHostBufferGrowthFactor = _without_effect("SetHostBufferGrowthFactor", "Has no effect: memory comes from a pool.")
SetDeviceBufferGrowthFactor = _without_effect("SetDeviceBufferGrowthFactor", "Has no effect: memory comes from a pool.")
SetHostBufferShrinkThreshold = _without_effect(
    "SetHostBufferShrinkThreshold", "Has no effect: memory comes from a pool."
)
GetNvjpegVersion = _without_effect("GetNvjpegVersion", "Returns -1, as in DALI, which no longer links to nvJPEG.", -1)
GetCufftVersion = _without_effect("GetCufftVersion", "-1: not used.", -1)
GetNppVersion = _without_effect("GetNppVersion", "-1: not used.", -1)
GetNvimgcodecVersion = _without_effect("GetNvimgcodecVersion", "-1: not used.", -1)
GetHostBufferGrowthFactor = _without_effect("GetHostBufferGrowthFactor", "Always 1: nothing grows.", 1.0)
GetDeviceBufferGrowthFactor = _without_effect("GetDeviceBufferGrowthFactor", "Always 1: nothing grows.", 1.0)
GetHostBufferShrinkThreshold = _without_effect("GetHostBufferShrinkThreshold", "Always 0: nothing shrinks.", 0.0)
