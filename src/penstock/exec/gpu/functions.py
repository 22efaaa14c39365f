# SPDX-License-Identifier: Apache-2.0
"""User functions on GPU batches: the arrays they are lent, and what they return as a batch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.batch import Batch, Spec
from ...gpu.batch import DeviceBatch
from ...gpu.interchange import LEGACY_STREAM, LentSample, foreign
from ...gpu.memory import Block
from ...gpu.session import GpuPass
from ...gpu.stream import ForeignStream, Stream


class Copy(NamedTuple):
    """A function's result for one sample, in memory of the pipeline."""

    block: Block
    shape: tuple[int, ...]
    dtype: np.dtype


class Arrays:
    """The `a.gpu` of an operator that `runs_on_gpu`."""

    def __init__(self, gpu: GpuPass):
        self.gpu, self.stream = gpu, gpu.stream

    def writable(self, batch: Batch) -> Batch:
        """The batch; a copy if its owner keeps using the memory."""
        if batch.is_borrowed:
            batch = batch.packed_copy()
            batch.used_on(self.stream)
        return batch

    def lend(self, batch: Batch, i: int) -> LentSample:
        assert isinstance(batch, DeviceBatch)
        return LentSample(batch, i)

    def copy(self, array: Any, waits: bool) -> Copy:
        """Copies a dense external array that was computed on the batch's stream or, with `waits`, on any stream that
        the default stream waits for."""
        stream = self.stream
        address, shape, dtype, number, owner, _ = foreign(array, -1)
        dtypes.from_numpy(dtype)
        if number != stream.device.id:
            raise ValueError(f"it is on GPU {number}, the pipeline works on GPU {stream.device.id}")
        nbytes = int(np.prod(shape, dtype="i8")) * dtype.itemsize
        block = self.gpu.take(max(nbytes, 1))
        if waits:
            stream.wait(ForeignStream(stream.device, LEGACY_STREAM).record())
        if nbytes:
            stream.copy(block.address, address, nbytes)
        if waits:
            stream.synchronize()  # before `owner` is released
        del owner
        return Copy(block, shape, dtype)

    def batch(self, copies: list[Copy]) -> DeviceBatch:
        """Makes a batch of copies. Raises ValueError if they differ in type or number of dimensions."""
        kinds = {(c.dtype, len(c.shape)) for c in copies}
        if len(kinds) > 1:
            told = ", ".join(sorted(f"{ndim} dimensions of {dtype.name}" for dtype, ndim in kinds))
            raise ValueError(f"all samples of a batch need the same number of dimensions and the same type; got {told}")
        dtype, ndim = kinds.pop() if kinds else (np.dtype("f4"), 0)
        spec = Spec(np.array([c.shape for c in copies], "i8").reshape(len(copies), ndim), dtype)
        rows = spec.packed()
        rows["data"] = [c.block.address for c in copies]
        batch = DeviceBatch(spec, rows, tuple(c.block for c in copies))
        batch.device, batch.stream, batch.ready = self.stream.device, self.stream, None
        return batch


class Functions:
    """The calls of one operator, batch by batch. Keeps their GPU work in order across streams, as functions may reuse
    their own arrays."""

    def __init__(self) -> None:
        self._stream: Callable[[], Stream | None] = lambda: None  # of the last call
        self._work = 0  # the amount of work submitted to it by then

    def arrays(self, gpu: GpuPass) -> Arrays:
        return Arrays(gpu)

    @contextmanager
    def keep(self, turn: AbstractContextManager, stream: Stream) -> Iterator[None]:
        with turn:
            last = self._stream()
            if last is not None and last is not stream and not last.closed:
                stream.wait_for(last, self._work)
            try:
                yield
            finally:
                stream.asked()  # the function may have submitted work
                self._stream, self._work = weakref.ref(stream), stream.work
