# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of user functions on the GPU: CuPy arrays by default."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class _Stream:
    """A stream with `__cuda_stream__`, the protocol of Python libraries."""

    def __init__(self, handle: int):
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class OfCuPy:
    """CuPy arrays. The function runs with the batch's stream as CuPy's current stream, so no synchronisation is
    needed."""

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
        """A dense GPU array with `__cuda_array_interface__` or DLPack."""
        if not hasattr(result, "__cuda_array_interface__"):
            raise TypeError(f"it has to return arrays of CuPy; got {type(result).__name__}")
        # Not for dense arrays: `ascontiguousarray` adds an axis to scalars.
        return result if result.flags.c_contiguous else self.cupy.ascontiguousarray(result)


class OfDLPack:
    """DLPack capsules. The function's stream is unknown, so the batch's stream is synchronised before the call, and the
    results are synchronised after it."""

    waits = True

    def on_stream(self, handle: int) -> AbstractContextManager:
        return nullcontext()

    def give(self, lent: Any) -> Any:
        return lent.__dlpack__()

    def take(self, result: Any) -> Any:
        if type(result).__name__ != "PyCapsule" and not hasattr(result, "__dlpack__"):
            raise TypeError(f"it has to return DLPack capsules; got {type(result).__name__}")
        return result
