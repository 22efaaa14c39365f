# SPDX-License-Identifier: Apache-2.0
"""What a batch asks of the GPU, as the emulated device counts it."""

import ctypes
import os


def work_of(stream: int) -> tuple[int, int]:
    """How many kernels a stream was given, and how often the host has waited for it or for an event in it.

    Where a pipeline prepares one batch ahead, the stream of the first one that `run(-1)` gives out has served for
    nothing else."""
    launches, waits = ctypes.c_int64(), ctypes.c_int64()
    library = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    library.emulated_counts(ctypes.c_void_p(stream), ctypes.byref(launches), ctypes.byref(waits))
    return launches.value, waits.value
