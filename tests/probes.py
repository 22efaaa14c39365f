# SPDX-License-Identifier: Apache-2.0
"""Operators for tests only, with kernels written in Python, which are called by the native threads.

`Whole` copies its input and can make any window of it; `Cut` reads only a window of its input. Before and after an
operator, they show that push-down of windows does not change the result. `plant` registers a test's own operator
temporarily.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import penstock
from penstock.core import dtypes, kernels
from penstock.core.batch import view
from penstock.core.op import REGISTRY, Operator
from penstock.registry import functions

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)
_python: dict[str, kernels.Kernel] = {}
_native = kernels.kernel


def python_kernel(path: str, fields: list[tuple], n_in: int = 1, n_out: int = 1) -> Callable:
    """Registers `function(outs, ins, row)`, which takes arrays, as the kernel `path` with argument rows of these
    fields."""

    def wrap(function: Callable) -> Callable:
        args = np.dtype(fields or [("unused", "u1")], align=True)

        def run(out: int, ins: int, row: int, scratch: int, error: int) -> int:
            try:
                function(_tensors(out, n_out), _tensors(ins, n_in), _row(row, args))
                return 0
            except Exception as e:  # handed on as the kernel's reason
                ctypes.memmove(
                    error,
                    str(e).encode()[: kernels.ERROR_SIZE - 1] + b"\0",
                    min(len(str(e).encode()), kernels.ERROR_SIZE - 1) + 1,
                )
                return 1

        kernel = object.__new__(kernels.Kernel)
        kernel.path = kernel.name = path
        kernel.args, kernel.pointers = args, frozenset()
        kernel.callback = _SIGNATURE(run)  # type: ignore[attr-defined]
        kernel.address = ctypes.cast(kernel.callback, ctypes.c_void_p).value  # type: ignore[attr-defined]
        _python[path] = kernel
        return function

    return wrap


def _row(address: int, dtype: np.dtype) -> np.void:
    return np.frombuffer(ctypes.string_at(address, dtype.itemsize), dtype)[0]


def _tensors(address: int, n: int) -> list[np.ndarray]:
    rows = np.frombuffer(ctypes.string_at(address, n * kernels.TENSOR.itemsize), kernels.TENSOR)
    return [
        view(
            int(r["data"]),
            tuple(map(int, r["shape"][: r["ndim"]])),
            dtypes.to_numpy(dtypes.DALIDataType(int(r["dtype"]))),
            None,
        )
        for r in rows
    ]


# The chain looks a kernel up by this name for each batch.
kernels.kernel = lambda path: _python.get(path) or _native(path)  # type: ignore[assignment]


@python_kernel("probe/window", [("origin", "i8", kernels.MAX_DIMS)])
def _window(outs: list[np.ndarray], ins: list[np.ndarray], row: Any) -> None:
    out, x = outs[0], ins[0]
    out[...] = x[tuple(slice(o, o + s) for o, s in zip(row["origin"], out.shape))]


def _origin(values: np.ndarray) -> dict[str, np.ndarray]:
    origin = np.zeros((len(values), kernels.MAX_DIMS), "i8")
    origin[:, : values.shape[1]] = values
    return {"origin": origin}


class _Whole(Operator):
    """A copy that can be limited to a window."""

    fn_name, kernel, windowed = "probe_whole", "probe/window", "FDHWC"

    def outputs(self, a, x):
        return x.like()

    def region(self, a, x, out):
        return out.origin, out.stored

    def params(self, a, x, out):
        return _origin(out.origin - x.origin)


class _Cut(Operator):
    """Removes the first quarter and the last eighth (rounded down) of every axis."""

    fn_name, kernel, windowed = "probe_cut", "probe/window", "FDHWC"

    def outputs(self, a, x):
        return x.like(shape=x.shape - x.shape // 4 - x.shape // 8)

    def region(self, a, x, out):
        return x.shape // 4 + out.origin, out.stored

    def params(self, a, x, out):
        return _origin(x.shape // 4 + out.origin - x.origin)


class _WholeSequence(_Whole):
    by_frame, fn_name = False, "probe_whole"


class _CutSequence(_Cut):
    by_frame, fn_name = False, "probe_cut"


def probes(frames: bool) -> tuple[type[Operator], type[Operator]]:
    """`Whole` and `Cut` for operators that process sequences frame by frame, or as a whole."""
    return (_Whole, _Cut) if frames else (_WholeSequence, _CutSequence)


def cut(x: np.ndarray, layout: str, frames: bool) -> np.ndarray:
    """The reference of `Cut` for one sample."""
    first = 1 if frames and layout.startswith("F") and x.ndim > 1 else 0
    return x[(slice(None),) * first + tuple(slice(s // 4, s - s // 8) for s in x.shape[first:])]


@contextmanager
def plant(make: Callable[[], type[Operator]]) -> Iterator[str]:
    """Registers the operator class that `make` defines, in fn and ops, and removes it afterwards. Yields its name."""
    cls = make()
    try:
        name = cls.fn_name
        setattr(penstock.fn, name, functions._function(cls, name))
        setattr(penstock.ops, cls.__name__, functions._class(cls, cls.__name__))
        yield name
    finally:
        REGISTRY.pop(cls.fn_name, None)
        for module, attribute in ((penstock.fn, cls.fn_name), (penstock.ops, cls.__name__)):
            if hasattr(module, attribute):
                delattr(module, attribute)
