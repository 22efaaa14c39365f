# SPDX-License-Identifier: Apache-2.0
"""Makes batches of arrays that are already on the GPU: copied on the GPU, or used in place. The host neither waits
nor reads the data.

An array is computed on its owner's stream. The source's stream waits for that stream, and the owner's stream
waits for the copy, so that later work there may overwrite the array."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.batch import Spec
from ..core.errors import DataError
from .batch import DeviceBatch
from .borrowed import Borrowed
from .copies import copy_on_device, pieces_of
from .driver import Device
from .interchange import LEGACY_STREAM, Foreign, downloaded, foreign, stream_handle
from .memory import Budget
from .stream import ForeignStream, Stream

_UNORDERED = -1  # stream value of DALI for no order: the caller waits until the copy is done


class GpuInputs:
    """The GPU inputs of one source. `stream` is always the user's value: the stream that computes the arrays, or
    None."""

    def __init__(self, device: Device, budget: Budget, copies: bool):
        """Without `copies`, arrays are used in place, and kept until the work that reads them is done."""
        self._device, self._budget, self._copies = device, budget, copies
        with device:
            self._stream = Stream(device)

    def sample(self, data: Any, stream: Any) -> Foreign | np.ndarray:
        """Wraps an array on this GPU; copies one from another GPU to host memory. DataError if it can't be used."""
        if getattr(data, "requires_grad", False):
            data = data.detach()
        ours = getattr(data, "_batch", None)
        try:
            if isinstance(ours, DeviceBatch):  # a TensorGPU
                address, shape = int(ours.rows["data"][0]), tuple(ours.spec.shape[0].tolist())
                found = Foreign(address, shape, ours.spec.dtype, ours.device.id, ours, self._behind(ours))
            else:
                with self._device:
                    behind = _current_stream(data) if stream is None else stream
                    found = foreign(data, -1, behind, self._device.id)
            dtypes.from_numpy(found.dtype)
        except (BufferError, TypeError, ValueError) as e:
            raise DataError(f"the source gave an array on the GPU that can't be used: {e}") from None
        return found if found.device_id == self._device.id else downloaded(found)

    def batch(self, samples: Sequence[Foreign], stream: Any) -> DeviceBatch:
        """A batch of arrays returned by `sample`, of one type and number of dimensions."""
        first = samples[0]
        spec = Spec(np.array([s.shape for s in samples], "i8").reshape(len(samples), first.ndim), first.dtype)
        addresses = np.array([s.address for s in samples], "u8")
        return self._taken(spec, addresses, [s.owner for s in samples], {s.stream for s in samples}, stream)

    def dense(self, array: Foreign, stream: Any) -> DeviceBatch:
        """A batch of one array (n, ...) returned by `sample`."""
        n, *shape = array.shape
        spec = Spec.uniform(n, tuple(shape), array.dtype)
        step = int(np.prod(shape, dtype="i8")) * array.dtype.itemsize
        addresses = array.address + step * np.arange(n, dtype="u8")
        return self._taken(spec, addresses, array.owner, {array.stream}, stream)

    def list(self, data: Any, stream: Any) -> DeviceBatch | None:
        """A batch of a penstock TensorListGPU; None for one of another library or GPU."""
        ours = getattr(data, "_batch", None)
        if not isinstance(ours, DeviceBatch) or ours.device.id != self._device.id:
            return None
        return self._taken(ours.spec.copy(), ours.rows["data"], ours, {self._behind(ours)}, stream, ours.is_borrowed)

    def _behind(self, ours: DeviceBatch) -> int:
        """The stream to wait for before using a penstock batch: this source's own stream, after making it wait for the
        batch, or a foreign one."""
        if isinstance(ours.stream, ForeignStream) or ours.device.id != self._device.id:
            return ours.stream.handle or LEGACY_STREAM
        with self._device:
            ours.used_on(self._stream)
        return self._stream.handle or 0

    def _taken(
        self, spec: Spec, addresses: np.ndarray, owner: Any, streams: set[int], stream: Any, copies: bool = False
    ) -> DeviceBatch:
        mine, handle = self._stream, None if stream is None else stream_handle(stream)
        with self._device:
            theirs = {h: ForeignStream(self._device, h) for h in streams if h != mine.handle}
            for s in theirs.values():
                mine.wait(s.record())
            rows = spec.packed()
            rows["data"] = addresses
            batch = DeviceBatch(spec, rows, (Borrowed(owner, mine),))
            batch.device, batch.stream = self._device, mine
            # Kernels read whole elements, so unaligned arrays are also copied.
            if not (copies or self._copies or (addresses % np.uint64(spec.dtype.itemsize)).any()):
                batch.ready = mine.mark()
                return batch
            try:
                copy = DeviceBatch.on(mine, spec, self._budget)
            except MemoryError as e:
                raise DataError(f"no memory for a copy on the GPU, which no_copy=True does not need: {e}") from None
            copy_on_device(pieces_of(batch, copy), mine)
            copy.ready = mine.mark()
            if handle is not None and handle != _UNORDERED:
                named = max(handle, LEGACY_STREAM)
                theirs[named] = ForeignStream(self._device, named)
            for s in theirs.values():
                s.wait(copy.ready)
            if handle == _UNORDERED:
                copy.ready.wait()
        return copy


def _current_stream(data: Any) -> int | None:
    """PyTorch's current stream, for its tensors; None for other arrays, which name their stream or use the default
    one."""
    torch: Any = sys.modules.get("torch")
    kind: Any = getattr(torch, "Tensor", None)
    if kind is None or not isinstance(data, kind):
        return None
    return int(torch.cuda.current_stream(data.device).cuda_stream)
