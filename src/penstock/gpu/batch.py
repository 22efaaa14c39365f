# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.batch import Batch, Spec
from ..core.dtypes import from_numpy
from ..core.errors import InternalError
from ..core.kernels import lay_out_batch, library
from ..core.rows import TENSOR, address, allocate
from .borrowed import Borrowed
from .copies import copy_on_device, copy_samples, pieces_of
from .driver import Device, check
from .memory import Block, Budget, pool
from .registered import Registered
from .stream import Event, Stream

if TYPE_CHECKING:
    from typing import TypeGuard

    from typing_extensions import Self

_LITTLE = 1 << 16  # bytes that are copied faster than the GIL is released and reacquired
COPIED_TOGETHER = 64 << 10  # maximum bytes of a batch that is copied together with others
_ALIGNED = 256
_BETWEEN = 64  # alignment in bytes of samples with different shapes


class DeviceBatch(Batch):
    """Samples in GPU memory, computed on `stream`. `ready`, once set, is the event after which they are valid."""

    __slots__ = ("device", "ready", "stream")
    on_host = False
    guard_bytes = 0  # checked by the emulated device and compute-sanitizer instead

    device: Device
    stream: Stream
    ready: Event | None

    @classmethod
    def on(
        cls, stream: Stream, spec: Spec, budget: Budget | None = None, sources: Sequence[str] | None = None
    ) -> DeviceBatch:
        """Allocates all samples for use on `stream`. Call inside `with device:`."""
        device = stream.device
        batch = cls.allocate(spec, sources, lambda nbytes: pool(device).take(nbytes, stream, budget))
        batch.device, batch.stream, batch.ready = device, stream, None
        return batch

    @classmethod
    def at(cls, stream: Stream, spec: Spec, rows: np.ndarray, block: Block, rows_address: int = 0) -> DeviceBatch:
        """Samples in a block that was allocated for use on `stream`."""
        batch = cls(spec, rows, (block,))
        batch._rows_address = rows_address
        batch.device, batch.stream, batch.ready = stream.device, stream, None
        return batch

    def with_rows(
        self, spec: Spec, rows: np.ndarray | None, owners: tuple, sources: Sequence[str] | None = None
    ) -> Self:
        batch = super().with_rows(spec, rows, owners, sources)
        batch.device, batch.stream, batch.ready = self.device, self.stream, self.ready
        return batch

    def blank(self, n: int, shape: tuple[int, ...]) -> DeviceBatch:
        with self.device:
            return DeviceBatch.on(self.stream, Spec.uniform(n, shape, self.spec.dtype))

    def sample(self, i: int) -> np.ndarray:
        raise InternalError("the data of a GPU batch can't be read by the CPU")

    def array(self) -> np.ndarray:
        raise InternalError("the data of a GPU batch can't be read by the CPU")

    @property
    def is_pooled(self) -> bool:
        """Whether all of its memory is from pools."""
        for owner in self.owners:
            if type(owner) is not Block:
                return False
        return True

    def used_on(self, stream: Stream) -> None:
        for owner in self.owners:
            if isinstance(owner, (Block, Borrowed)):
                owner.used_on(stream)
        if self.ready is not None and stream.handle != self.stream.handle and not self.ready.done():
            stream.wait(self.ready)

    def wait(self) -> None:
        if self.ready is not None and self.ready.passed:
            return
        with self.device:
            if self.ready is not None:
                if not self.ready.done():
                    self.ready.wait()
            else:
                self.stream.synchronize()

    def download(self, stream: Stream | None = None) -> Batch:
        """Copies the samples to pinned host memory, and waits for the copy."""
        with self.device:
            stream = stream or Stream(self.device)
            self.used_on(stream)
            out = Batch.allocate(self.spec, self.sources, lambda n: pool(self.device, True).take(n, stream))
            copy_samples(self, out, stream.download)
            stream.synchronize()
        return out

    def packed_copy(self, pool: object = None, memory: object = None) -> DeviceBatch:
        with self.device:
            out = DeviceBatch.on(self.stream, self.spec, None, self.sources)
            copy_on_device(pieces_of(self, out), self.stream)
            out.ready = self.stream.mark()
        return out

    def put(self, indices: np.ndarray, other: Batch) -> DeviceBatch:
        assert isinstance(other, DeviceBatch)
        with self.device:
            other.used_on(self.stream)
            if self.is_pooled and (self.spec.stored[indices] == other.spec.stored).all():
                copy_on_device(pieces_of(other, self.take(indices)), self.stream)
                merged = self
            else:
                shape, rows = self.spec.shape.copy(), self.rows.copy()
                shape[indices], rows[indices] = other.spec.shape, other.rows
                spec = Spec(shape, self.spec.dtype, self.spec.layout)
                merged = self.with_rows(spec, rows, (*self.owners, *other.owners), self.sources)
            merged.ready = self.stream.record()
        if self.sources is not None and other.sources is not None:
            merged.sources = list(self.sources)
            for j, i in enumerate(indices):
                merged.sources[i] = other.sources[j]
        return merged


def upload(batch: Batch, stream: Stream, budget: Budget | None = None) -> DeviceBatch:
    """Copies the samples to the GPU on `stream`. Call inside `with device:`.

    Samples in pinned memory are copied asynchronously; others are first copied to a pinned block."""
    if batch._array is not None and not any(isinstance(o, Registered) for o in batch.owners):
        return _upload_array(batch, batch._array, stream, budget)
    spec, placed = batch.spec, _placed(batch)
    if placed is None:
        batch = batch.packed_copy()
        placed = _placed(batch)
        if placed is None:
            raise InternalError("a packed copy is not in one block")
    device, (rows, at, begin, nbytes) = stream.device, placed
    pinned = next((o for o in batch.owners if _is_pinned(o, begin, nbytes)), None)
    if pinned is None:
        pinned = pool(device, True).take(max(nbytes, 1), stream)
        ctypes.memmove(pinned.address, begin, nbytes)
        begin = pinned.address
    pinned.used_on(stream)
    block = pool(device).take(nbytes, stream, budget)
    library().move_batch(at, spec.n, block.address)
    out = DeviceBatch.at(stream, spec, rows, block, at)
    out.sources, out._packed = batch.sources, spec.is_dense
    stream.upload(block.address, begin, nbytes)
    return out


def _is_pinned(owner: object, begin: int, nbytes: int) -> TypeGuard[Block | Registered]:
    return isinstance(owner, Block) or isinstance(owner, Registered) and owner.holds(begin, nbytes)


def _upload_array(batch: Batch, array: np.ndarray, stream: Stream, budget: Budget | None) -> DeviceBatch:
    """As `upload`, for samples that are one array."""
    device, nbytes = stream.device, array.nbytes
    if not nbytes:
        return DeviceBatch.on(stream, batch.spec, budget, batch.sources)
    pinned, block = pool(device, True).take(nbytes, stream), pool(device).take(nbytes, stream, budget)
    n, begin = len(array), address(array)
    rows, at = allocate(n, TENSOR)
    if nbytes > _LITTLE:
        ctypes.memmove(pinned.address, begin, nbytes)
        begin = pinned.address
    where = pinned.address, block.address, stream.handle, at
    code = library().upload_samples(batch.rows_address, n, array.strides[0], begin, nbytes, *where)
    stream.asked()
    check(code, "copying samples to the GPU")
    out = DeviceBatch.at(stream, batch.spec, rows, block, at)
    out.sources, out._packed = batch.sources, True
    return out


def upload_small(batches: list[Batch], stream: Stream, budget: Budget | None = None) -> list[DeviceBatch | None]:
    """As `upload`, for small batches if there are several: with one copy, to one block. None for the others."""
    device, end, lib = stream.device, 0, library()
    made: list[DeviceBatch | None] = [None] * len(batches)
    todo = []
    for i, batch in enumerate(batches):
        is_large = batch._array is not None and batch._array.nbytes > COPIED_TOGETHER
        if not batch.on_host or batch.is_borrowed or is_large:
            continue
        placed = _placed(batch)
        if placed is not None and 0 < placed[3] <= COPIED_TOGETHER:
            todo.append((i, end, placed))
            end += -(-placed[3] // _ALIGNED) * _ALIGNED
    if len(todo) < 2:
        return made
    pinned, block = pool(device, True).take(end, stream), pool(device).take(end, stream, budget)
    for i, place, (rows, at, begin, nbytes) in todo:
        ctypes.memmove(pinned.address + place, begin, nbytes)
        spec = batches[i].spec
        lib.move_batch(at, spec.n, block.address + place)
        made[i] = out = DeviceBatch.at(stream, spec, rows, block, at)
        out.sources, out._packed = batches[i].sources, spec.is_dense
    stream.upload(block.address, pinned.address, end)
    return made


def _placed(batch: Batch) -> tuple[np.ndarray, int, int, int] | None:
    """Returns the samples' rows for a block that begins at 0, the address of the rows, the address of the first sample,
    and the total bytes; None if the samples are not laid out as by `Batch.allocate`."""
    spec, array = batch.spec, batch._array
    rows, at = allocate(spec.n, TENSOR)
    if array is not None:
        nbytes, _ = lay_out_batch(spec.stored, from_numpy(spec.dtype), 0, at)
        return rows, at, address(array), nbytes
    nbytes = library().rows_in_block(batch.rows_address, spec.n, 1 if spec.is_dense else _BETWEEN, at)
    return None if nbytes < 0 else (rows, at, int(batch.rows["data"][0]) if nbytes else 0, nbytes)
