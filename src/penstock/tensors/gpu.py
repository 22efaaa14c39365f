# SPDX-License-Identifier: Apache-2.0
"""Outputs of pipelines in GPU memory: `TensorListGPU`, a batch, and `TensorGPU`, one of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.batch import Batch, Spec
from ..core.dtypes import DALIDataType
from ..core.source_name import given_name
from ..gpu import dlpack, dlpack_export
from ..gpu.batch import DeviceBatch
from ..gpu.interchange import LEGACY_STREAM, borrowed, copy_out, foreign, is_packed, stream_handle
from ..gpu.stream import ForeignStream, Stream
from .cpu import TensorCPU, TensorListCPU
from .tensor_list import ShapeError, TensorList, check_layout, describe, same_size

__all__ = ["TensorGPU", "TensorListGPU"]

UNORDERED = -1  # value of a stream: no synchronisation, as in DLPack


class TensorGPU:
    """One sample, or a whole dense batch, in GPU memory.

    Shares its memory through DLPack and `__cuda_array_interface__`; it is valid as long as anything refers to it. A
    consumer that uses DLPack waits on the GPU, not on the host, until the data is complete.

    Parameters
    ----------
    object
        Anything with `__cuda_array_interface__` or `__dlpack__` on a GPU, or a DLPack capsule. Not copied.
    layout
        The layout, such as "HWC"; None or "" for none.
    device_id
        The GPU. By default that of the object.
    stream
        For a capsule: the stream that computes the data. By default the default stream. Arrays provide their own.
    """

    _batch: DeviceBatch  # contains one sample

    def __init__(self, object: Any, layout: str | None = None, device_id: int = -1, stream: Any = None):
        address, shape, dtype, device_id, owner, behind = foreign(object, device_id, stream)
        dtypes.from_numpy(dtype)
        layout = check_layout(layout, len(shape), "the tensor")
        spec = Spec(np.array([shape], "i8").reshape(1, len(shape)), dtype, layout)
        self._batch = borrowed(spec, [address], (owner,), device_id, behind)
        self._source = ""

    @classmethod
    def _of(cls, batch: DeviceBatch) -> TensorGPU:
        tensor = cls.__new__(cls)
        tensor._batch, tensor._source = batch, "" if batch.sources is None else batch.sources[0]
        return tensor

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(self._batch.spec.shape[0].tolist())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        b = self._batch
        pending = b.ready is not None and not b.ready.done()
        return {
            "data": (self.data_ptr(), False),
            "shape": self._shape,
            "typestr": b.spec.dtype.str,
            "version": 3,
            "strides": None,
            "stream": b.stream.handle if pending else None,
        }

    def __dlpack__(self, *, stream: Any = None, dl_device: Any = None, copy: bool | None = None, **kwargs: Any) -> Any:
        return _capsule(_for_others(self._batch, dl_device, copy), -1, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._batch.device.id)

    @property
    def dtype(self) -> DALIDataType:
        return dtypes.from_numpy(self._batch.spec.dtype)

    def ndim(self) -> int:
        """Number of dimensions."""
        return self._batch.spec.ndim

    def shape(self) -> list[int]:
        """Extents of the tensor."""
        return list(self._shape)

    def layout(self) -> str:
        return self._batch.spec.layout

    def set_layout(self, layout: str | None) -> None:
        spec = self._batch.spec
        self._batch = _relabelled(self._batch, layout=check_layout(layout, spec.ndim, "the tensor"))

    def device_id(self) -> int:
        """The index of the GPU."""
        return self._batch.device.id

    @property
    def stream(self) -> int:
        """The stream that computed the data."""
        return self._batch.stream.handle or 0

    def source_info(self) -> str:
        """The origin of the sample: a file name, relative to `file_root` if it was read with one, or a record of a
        container."""
        return given_name(self._source)

    def get_property(self, key: str) -> Any:
        """Returns `"layout"` or `"source_info"`; None if there is none."""
        return {"layout": self.layout(), "source_info": given_name(self._source)}.get(key) or None

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._batch.rows["data"][0])

    def as_cpu(self) -> TensorCPU:
        """Returns a copy in CPU memory."""
        host = self._batch.download()
        tensor = TensorCPU(host.sample(0), self.layout())
        tensor._source = self._source
        return tensor

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copies the content to memory of the same GPU, in `cuda_stream` (by default one of its own)."""
        copy_out(self._batch, ptr, cuda_stream, non_blocking)

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterprets the bytes as elements of another type of the same size."""
        self._batch = _relabelled(self._batch, dtype=same_size(self._batch.spec.dtype, new_type))

    def squeeze(self, dim: int | None = None) -> bool:
        """Removes dimensions of extent 1 (or the given one); returns whether any was removed."""
        ndim, shape, layout = self.ndim(), self._shape, self.layout()
        if dim is not None and not -ndim <= dim < ndim:
            raise IndexError(f"a tensor of {ndim} dimensions has no dimension {dim}")
        dims = [d for d, s in enumerate(shape) if s == 1 and (dim is None or d == dim % ndim)]
        kept = np.array([[s for d, s in enumerate(shape) if d not in dims]], "i8").reshape(1, ndim - len(dims))
        self._batch = _relabelled(self._batch, kept, "".join(c for d, c in enumerate(layout) if d not in dims))
        return bool(dims)

    def __repr__(self) -> str:
        return describe("TensorGPU", "", self.dtype, self.layout(), f"shape={self._shape}", "gpu")

    def __str__(self) -> str:
        values = np.array2string(np.asarray(self.as_cpu()), threshold=100, edgeitems=2)
        return describe("TensorGPU", values, self.dtype, self.layout(), f"shape={self._shape}", "gpu")

    def _repr_html_(self) -> str | None:
        return self.as_cpu()._repr_html_()


class TensorListGPU(TensorList):
    """The samples of a batch in GPU memory; their shapes may differ.

    Parameters
    ----------
    source
        A list of `TensorGPU` or arrays on the GPU of one type and number of dimensions, an array whose first axis is
        the batch, a DLPack capsule of one, or a `TensorListGPU`.
    layout
        The layout of a sample, such as "HWC". By default that of the samples.
    contiguous
        Whether to copy the samples of a list into one block.
    """

    _batch: DeviceBatch
    _device = "gpu"

    def __init__(
        self,
        source: Any = (),
        layout: str | None = None,
        device_id: int = -1,
        stream: Any = None,
        contiguous: bool = False,
    ):
        if isinstance(source, TensorListGPU):
            self._batch = source._own()
        elif isinstance(source, DeviceBatch):
            self._batch = source
        elif isinstance(source, (list, tuple)):
            self._batch = _batch_of([t if isinstance(t, TensorGPU) else TensorGPU(t) for t in source], contiguous)
        else:
            address, shape, dtype, device_id, owner, behind = foreign(source, device_id, stream)
            if not shape:
                raise ValueError("the first axis of an array is the batch; got a scalar")
            spec = Spec.uniform(shape[0], shape[1:], dtype)
            step = int(np.prod(shape[1:])) * dtype.itemsize
            addresses = [address + i * step for i in range(shape[0])]
            self._batch = borrowed(spec, addresses, (owner,), device_id, behind)
        if layout is not None:
            self.set_layout(layout)

    @classmethod
    def given_out(cls, batch: Batch, cuda_stream: Any) -> TensorListGPU:
        """A pipeline's output, ready for the host (None) or for work of `cuda_stream`. -1: without synchronisation."""
        assert isinstance(batch, DeviceBatch)
        if cuda_stream is None:
            batch.wait()
        elif not isinstance(cuda_stream, int) or cuda_stream != UNORDERED:
            with batch.device:
                batch.used_on(ForeignStream(batch.device, stream_handle(cuda_stream) or LEGACY_STREAM))
        return cls.of(batch)

    @staticmethod
    def _capsules(batches: Sequence[Batch], stream_of: Callable[[int], int]) -> list[Any]:
        """DLPack capsules of outputs for the stream `stream_of(device_id)`; None for outputs that are on the CPU,
        empty, ragged, or not in the pool's memory."""
        made: list[Any] = []
        stream, waited = 0, None
        for batch in batches:
            if type(batch) is DeviceBatch and (n := batch.spec.n) and batch.is_packed and batch.is_pooled:
                stream = stream or stream_of(batch.device.id)
                if batch.ready is not waited:  # shared by outputs
                    waited = batch.ready
                    dlpack_export.wait_until_ready(batch, stream)
                made.append(dlpack_export.capsule(batch, n, stream))
            else:
                made.append(None)
        return made

    @classmethod
    def of_work(cls, batch: Batch, stream: Stream) -> TensorListGPU:
        """A batch computed by the work of `stream` so far, for other libraries."""
        assert isinstance(batch, DeviceBatch)
        batch = batch.with_rows(batch.spec, batch.rows, batch.owners)
        if batch.ready is None:
            batch.ready = stream.record()
        return cls(batch)

    @staticmethod
    def broadcast(sample: TensorGPU, num_samples: int) -> TensorListGPU:
        """Returns a batch that has the same sample `num_samples` times, without copies."""
        return TensorListGPU(sample._batch.take(np.zeros(num_samples, "i8")))

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, stream: Any = None, contiguous: bool = False
    ) -> TensorListGPU:
        """Creates a batch from a list of arrays that support DLPack."""
        return TensorListGPU([TensorGPU(o) for o in list_of_objects], layout, contiguous=contiguous)

    def _own(self) -> DeviceBatch:
        """The batch for a receiver that may write to it. Copied if its memory is shared."""
        if self._batch.is_borrowed:
            self._batch = self._batch.packed_copy()
            self._batch.wait()
        return self._batch

    def __getitem__(self, i: int) -> TensorGPU:
        n = len(self)
        if not hasattr(i, "__index__"):
            raise TypeError(f"a batch is indexed by the number of a sample; got {type(i).__name__}")
        if not -n <= i < n:
            raise IndexError(f"a batch of {n} samples has no sample {i}")
        return TensorGPU._of(self._own().take(np.array([i % n])))

    def __iter__(self) -> Iterator[TensorGPU]:
        return (self[i] for i in range(len(self)))

    at = __getitem__

    def as_tensor(self) -> TensorGPU:
        """Returns the batch as one tensor whose first axis is the batch. Raises ValueError if the samples differ in
        shape."""
        spec = self._batch.spec
        if not spec.is_dense:
            raise ShapeError(
                f"the samples differ in shape: {spec.shape.tolist()[:4]}...; make them alike (resize, crop, pad) first"
            )
        shape = [len(self), *(spec.shape[0].tolist() if len(self) else [0] * spec.ndim)]
        return self._as_one(shape, "N" + spec.layout if spec.layout else "")

    def _as_one(self, shape: Sequence[int], layout: str = "") -> TensorGPU:
        batch = self._own()
        batch = batch if is_packed(batch) else batch.packed_copy()
        one = Spec(np.array([shape], "i8"), batch.spec.dtype, layout)
        rows = one.packed()
        rows["data"] = batch.rows["data"][0] if len(batch) else 0
        return TensorGPU._of(batch.with_rows(one, rows, (*batch.owners, batch)))

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorGPU:
        """Returns the batch as one tensor of another shape with the same number of elements."""
        have, want = int(self._batch.spec.volumes().sum()), int(np.prod(shape))
        if have != want or not self.is_dense_tensor():
            raise ShapeError(f"a batch of {have} elements can't become a tensor of shape {list(shape)}")
        return self._as_one(list(shape))

    def as_cpu(self) -> TensorListCPU:
        """Returns a copy in CPU memory."""
        return TensorListCPU(self._batch.download())

    def __dlpack__(self, *, stream: Any = None, dl_device: Any = None, copy: bool | None = None, **kwargs: Any) -> Any:
        b = self._own()
        if not len(b) or not b.is_packed:
            return self.as_tensor().__dlpack__(stream=stream, dl_device=dl_device, copy=copy, **kwargs)
        b = _for_others(b, dl_device, copy)
        return _capsule(b, len(b), stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._batch.device.id)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.as_tensor().__cuda_array_interface__

    def device_id(self) -> int:
        """The index of the GPU."""
        return self._batch.device.id

    @property
    def stream(self) -> int:
        """The stream that computed the data."""
        return self._batch.stream.handle or 0

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._own().rows["data"][0]) if len(self) else 0

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copies all samples, one behind the other, to memory of the same GPU, in `cuda_stream` (by default one of its
        own)."""
        copy_out(self._batch, ptr, cuda_stream, non_blocking)

    def reset(self) -> None:
        """Releases the samples."""
        self._batch = self._batch.take(np.zeros(0, "i8"))

    def __str__(self) -> str:
        host = self.as_cpu()
        return self._describe(str([host.at(i) for i in range(min(len(host), 8))]))

    def _repr_html_(self) -> str | None:
        return self.as_cpu()._repr_html_()


def _for_others(batch: DeviceBatch, dl_device: Any, copy: bool | None) -> DeviceBatch:
    """The batch for DLPack, or a copy of it with `copy`. Raises BufferError for another device."""
    if dl_device is not None and tuple(map(int, dl_device)) != (2, batch.device.id):
        raise BufferError(
            f"the data is on GPU {batch.device.id}, not on DLPack's device {dl_device}; as_cpu() copies it"
        )
    return batch.packed_copy() if copy else batch


def _capsule(batch: DeviceBatch, n: int, stream: Any) -> Any:
    """A DLPack capsule for work of `stream`: of n contiguous samples, or, if n is negative, of the only sample."""
    if stream != UNORDERED:
        handle = LEGACY_STREAM if stream in (None, 0) else stream_handle(stream)
        if batch.is_pooled:
            dlpack_export.wait_until_ready(batch, handle)
            return dlpack_export.capsule(batch, n, handle)
        with batch.device:
            batch.used_on(ForeignStream(batch.device, handle))
    shape = [n][: n >= 0] + batch.spec.shape[0].tolist()
    return dlpack.capsule(int(batch.rows["data"][0]), shape, batch.spec.dtype, batch.device.id, batch)


def _relabelled(batch: DeviceBatch, shape: Any = None, layout: str | None = None, dtype: Any = None) -> DeviceBatch:
    out = batch.relabel(batch.spec.like(shape, dtype, layout))
    assert isinstance(out, DeviceBatch)
    return out


def _batch_of(tensors: list[TensorGPU], contiguous: bool) -> DeviceBatch:
    if not tensors:
        raise ValueError("a batch on the GPU needs at least one sample")
    first = tensors[0]
    for i, t in enumerate(tensors):
        if t.dtype != first.dtype or t.ndim() != first.ndim() or t.device_id() != first.device_id():
            raise TypeError(
                "all samples of a batch need the same type, number of dimensions and GPU: sample "
                f"{i} is {t!r}, sample 0 {first!r}"
            )
    layout = next((t.layout() for t in tensors if t.layout()), "")
    spec = Spec(
        np.array([t.shape() for t in tensors], "i8").reshape(len(tensors), first.ndim()),
        first._batch.spec.dtype,
        layout,
    )
    owners = tuple(t._batch for t in tensors)
    batch = borrowed(spec, [t.data_ptr() for t in tensors], owners, first.device_id())
    batch.sources = [t._source for t in tensors]
    for t in tensors:
        t._batch.wait()
    return batch.packed_copy() if contiguous else batch
