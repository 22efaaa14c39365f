# SPDX-License-Identifier: Apache-2.0
"""The operator that runs a compiled function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import fn as _fn
from ...types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ...data_node import DataNode
    from ..function_arguments import CallArguments, PlacedArguments


class _OfNumba:
    """`numba.cuda` arrays. Kernels are launched on the batch's stream, so no synchronisation is needed."""

    waits = False

    def __init__(self, compiled: _Compiled):
        self.compiled, self.cuda = compiled, _cuda()

    def on_stream(self, handle: int) -> AbstractContextManager:
        self.compiled.stream = self.cuda.external_stream(handle)
        return nullcontext()

    def give(self, lent: Any) -> Any:
        return self.cuda.as_cuda_array(lent)

    def take(self, result: Any) -> Any:
        return result


class _Compiled:
    """Allocates the outputs and calls the compiled function to fill them; on the GPU, launches the compiled kernel."""

    stream: Any = None  # CUDA stream; None on the CPU

    def __init__(
        self,
        run_fn: Callable[..., None],
        setup_fn: Callable[..., None] | None,
        types: tuple[Sequence[Any], Sequence[Any]],
        ndims: tuple[Sequence[int], Sequence[int]],
        batch_processing: bool,
        launch: tuple[Any, Any] = (None, None),
    ):
        functools.update_wrapper(self, run_fn, updated=())
        self.run_fn, self.launch = run_fn, launch
        (self.out_types, self.in_types), (self.outs_ndim, self.ins_ndim) = types, ndims
        self.batch, self.setup_fn = batch_processing, setup_fn

    @functools.cached_property
    def run(self) -> Callable[..., None]:
        return self.run_fn if hasattr(self.run_fn, "py_func") else _compiler()(nogil=True)(self.run_fn)

    @functools.cached_property
    def kernel(self) -> Any:
        return self.run_fn if hasattr(self.run_fn, "py_func") else _cuda().jit(self.run_fn)

    def gpu_arrays(self) -> _OfNumba:
        if self.batch:
            raise ValueError("batch_processing=True is for the CPU: on the GPU a kernel gets one sample")
        if None in self.launch:
            raise ValueError(
                "on the GPU `blocks` and `threads_per_block` are needed, with which the kernel is launched"
            )
        return _OfNumba(self)

    def __call__(self, *columns: list[np.ndarray]) -> Any:
        """`columns`: the samples of each input."""
        for k, (column, dtype, ndim) in enumerate(zip(columns, self.in_types, self.ins_ndim)):
            for x in column[:1]:
                if x.dtype != dtype or x.ndim != ndim:
                    raise TypeError(
                        f"input {k} is {x.dtype.name} of {x.ndim} dimensions; in_types and ins_ndim say "
                        f"{dtype.name} of {ndim}"
                    )
        if self.stream is not None:
            return self._launched(columns)
        outs = [[np.empty(s, t) for s in shapes] for t, shapes in zip(self.out_types, self._shapes(columns))]
        if self.batch:
            self.run(*map(_typed, outs), *map(_typed, columns))
        else:
            for sample in zip(*outs, *columns):
                self.run(*sample)
        return tuple(outs) if len(outs) > 1 else outs[0]

    def _launched(self, columns: tuple[list[Any], ...]) -> Any:
        cuda, (blocks, threads) = _cuda(), self.launch
        outs = [
            [cuda.device_array(s, t, stream=self.stream) for s in shapes]
            for t, shapes in zip(self.out_types, self._shapes(columns))
        ]
        kernel = self.kernel[_extent(blocks), _extent(threads), self.stream]
        for sample in zip(*outs, *columns):
            if all(0 not in x.shape for x in sample):
                kernel(*sample)
        return tuple(outs) if len(outs) > 1 else outs[0]

    def _shapes(self, columns: Sequence[list[np.ndarray]]) -> list[list[tuple[int, ...]]]:
        """For each output the shapes of its samples: by `setup_fn`, or those of the inputs."""
        ins = [[np.array(x.shape, "i8") for x in c] for c in columns]
        n = len(columns[0]) if columns else 0
        if self.setup_fn is None:
            if len(self.outs_ndim) != len(self.ins_ndim):
                raise ValueError("without setup_fn there must be as many outputs as inputs, of the same shapes")
            return [[tuple(s.tolist()) for s in c] for c in ins]
        outs = [[np.zeros(ndim, "i8") for _ in range(n)] for ndim in self.outs_ndim]
        self.setup_fn(outs, ins)
        return [[tuple(int(e) for e in s) for s in c] for c in outs]


def _extent(value: Any) -> Any:
    return tuple(int(v) for v in value) if isinstance(value, (list, tuple)) else int(value)


def _cuda() -> Any:
    try:
        from numba import cuda
    except ImportError:
        raise ImportError("numba_function on the GPU needs Numba for CUDA: pip install numba-cuda") from None
    return cuda


def _compiler() -> Any:
    try:
        import numba
    except ImportError:
        raise ImportError("numba_function needs Numba: pip install numba") from None
    return numba.njit


def _typed(arrays: list[np.ndarray]) -> Any:
    import numba

    return numba.typed.List(arrays)


def numba_function(
    *inputs: DataNode | Sequence[DataNode] | NDArray[Any] | float,
    run_fn: Callable[..., None],
    out_types: Sequence[DALIDataType] | DALIDataType,
    in_types: Sequence[DALIDataType] | DALIDataType,
    outs_ndim: Sequence[int] | int,
    ins_ndim: Sequence[int] | int,
    setup_fn: Callable[..., None] | None = None,
    batch_processing: bool = False,
    blocks: int | Sequence[int] | None = None,
    threads_per_block: int | Sequence[int] | None = None,
    **kwargs: Unpack[PlacedArguments],
) -> DataNode:
    """Compiles `run_fn(out0, ..., in0, ...)`, which fills the outputs from the inputs of a sample, and runs it.

    With `batch_processing`, it gets lists of the samples. The outputs have the shapes of the inputs, or those written
    by `setup_fn(outs, ins)`: for each output and each sample an array of its extents. On the GPU, `run_fn` becomes a
    kernel of `numba.cuda`, launched for each sample with `blocks` and `threads_per_block`.
    """
    types = tuple([np.dtype(to_numpy_type(t)) for t in _listed(v)] for v in (out_types, in_types))
    ndims = tuple([int(n) for n in _listed(v)] for v in (outs_ndim, ins_ndim))
    for what, t, n in (("out_types", types[0], ndims[0]), ("in_types", types[1], ndims[1])):
        if len(t) != len(n):
            raise ValueError(f"numba_function: {what} has {len(t)} entries, the numbers of dimensions {len(n)}")
    if len(inputs) != len(types[1]):
        raise ValueError(f"numba_function: {len(inputs)} inputs, but in_types has {len(types[1])}")
    compiled = _Compiled(
        run_fn, setup_fn, (types[0], types[1]), (ndims[0], ndims[1]), batch_processing, (blocks, threads_per_block)
    )
    return _fn.python_function(*inputs, function=compiled, num_outputs=len(types[0]), batch_processing=True, **kwargs)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class NumbaFunction:
    """`numba_function` as a class: takes the arguments; its objects are called with the inputs."""

    def __init__(
        self,
        run_fn: Callable[..., None],
        out_types: Sequence[DALIDataType] | DALIDataType,
        in_types: Sequence[DALIDataType] | DALIDataType,
        outs_ndim: Sequence[int] | int,
        ins_ndim: Sequence[int] | int,
        setup_fn: Callable[..., None] | None = None,
        device: str = "cpu",
        batch_processing: bool = False,
        blocks: int | Sequence[int] | None = None,
        threads_per_block: Any = None,
        **kwargs: Any,
    ):
        self._kwargs = {
            **{"blocks": blocks, "threads_per_block": threads_per_block},
            **{"run_fn": run_fn, "out_types": out_types, "in_types": in_types, "outs_ndim": outs_ndim},
            **{"ins_ndim": ins_ndim, "setup_fn": setup_fn, "device": device, "batch_processing": batch_processing},
            **kwargs,
        }

    def __call__(
        self, *inputs: DataNode | Sequence[DataNode] | NDArray[Any] | float, **kwargs: Unpack[CallArguments]
    ) -> DataNode:
        return numba_function(*inputs, **{**self._kwargs, **kwargs})

    @property
    def device(self) -> str:
        return str(self._kwargs["device"])

    @property
    def preserve(self) -> bool:
        return bool(self._kwargs.get("preserve", False))
