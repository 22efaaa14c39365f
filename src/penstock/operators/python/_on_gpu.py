# SPDX-License-Identifier: Apache-2.0
"""What functions of the user are given of batches on the GPU and what they may return: arrays of CuPy, by default."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class _Stream:
    """A stream as libraries of Python know it."""

    def __init__(self, handle: int):
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class OfCuPy:
    """Arrays of CuPy. The function runs with the batch's stream as CuPy's current one, so nobody waits."""

    waits = False

    def __init__(self) -> None:
        try:
            self.cupy = importlib.import_module("cupy")
        except ImportError as e:
            raise RuntimeError(
                f"a function on the GPU gets arrays of CuPy, which can't be imported ({e}): install cupy-cuda13x or "
                "cupy-cuda12x, or run it on the CPU, with input.cpu()"
            ) from None

    def on_stream(self, handle: int) -> AbstractContextManager:
        from_external = getattr(getattr(self.cupy.cuda, "Stream", None), "from_external", None)
        return from_external(_Stream(handle)) if from_external else self.cupy.cuda.ExternalStream(handle)

    def give(self, lent: Any) -> Any:
        return self.cupy.asarray(lent)

    def take(self, result: Any) -> Any:
        """Something dense with `__cuda_array_interface__` or DLPack on the GPU."""
        if not hasattr(result, "__cuda_array_interface__"):
            raise TypeError(f"it has to return arrays of CuPy; got {type(result).__name__}")
        # As it is, if it is dense: `ascontiguousarray` gives scalars an axis.
        return result if result.flags.c_contiguous else self.cupy.ascontiguousarray(result)


class OfDLPack:
    """DLPack capsules. Nobody knows on which stream the function works: the GPU has finished before it is called, and
    what it gave is waited for."""

    waits = True

    def on_stream(self, handle: int) -> AbstractContextManager:
        return nullcontext()

    def give(self, lent: Any) -> Any:
        return lent.__dlpack__()

    def take(self, result: Any) -> Any:
        if type(result).__name__ != "PyCapsule" and not hasattr(result, "__dlpack__"):
            raise TypeError(f"it has to return DLPack capsules; got {type(result).__name__}")
        return result
