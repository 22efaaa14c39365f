# SPDX-License-Identifier: Apache-2.0
"""Outputs of pipelines in CPU memory: `TensorListCPU`, a batch, and `TensorCPU`, one of its samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.batch import Batch
from ..core.dtypes import DALIDataType
from ..core.errors import ArgumentValueError, PlaceError
from ..core.source_name import given_name
from .arrays import as_numpy, copy_out, dlpack
from .tensor_list import ShapeError, TensorList, check_layout, describe, no_attribute, same_size

__all__ = ["TensorCPU", "TensorListCPU"]


class TensorCPU:
    """One sample, or a whole dense batch, in CPU memory.

    Shares its memory through `__array_interface__` and DLPack; the memory is valid as long as anything refers to it.

    Parameters
    ----------
    object
        An array (NumPy, or anything with `__array__`, `__array_interface__`, `__dlpack__` or the buffer protocol) or a
        DLPack capsule. Not copied if it is contiguous.
    layout
        The layout, such as "HWC"; None or "" for none.

    >>> import numpy as np
    >>> TensorCPU(np.zeros((4, 6, 3), np.uint8), "HWC").shape()
    [4, 6, 3]
    """

    def __init__(self, object: Any, layout: str | None = None, is_pinned: bool = False):
        array = as_numpy(object)
        dtypes.from_numpy(array.dtype)
        self._array = np.ascontiguousarray(array) if array.ndim else array
        self._layout = check_layout(layout, array.ndim, "the tensor")
        self._source = ""

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(type(self), name)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._array.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __bytes__(self) -> bytes:
        return self._array.tobytes()

    def __dlpack__(self, **kwargs: Any) -> Any:
        return dlpack(self._array, kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def dtype(self) -> DALIDataType:
        return dtypes.from_numpy(self._array.dtype)

    def ndim(self) -> int:
        """Number of dimensions."""
        return self._array.ndim

    def shape(self) -> list[int]:
        """Extents of the tensor."""
        return list(self._array.shape)

    def layout(self) -> str:
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        self._layout = check_layout(layout, self._array.ndim, "the tensor")

    def source_info(self) -> str:
        """The origin of the sample: a file name, relative to `file_root` if it was read with one, or a record of a
        container."""
        return given_name(self._source)

    def get_property(self, key: str) -> Any:
        """Returns `"layout"` or `"source_info"`; None if there is none."""
        return {"layout": self._layout, "source_info": given_name(self._source)}.get(key) or None

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.ctypes.data

    def as_cpu(self) -> TensorCPU:
        return self

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the content to an address, a ctypes pointer or object, or an array."""
        copy_out(self._array, ptr)

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterprets the bytes as elements of another type of the same size."""
        self._array = self._array.view(same_size(self._array.dtype, new_type))

    def squeeze(self, dim: int | None = None) -> bool:
        """Removes dimensions of extent 1 (or the given one); returns whether any was removed."""
        ndim = self._array.ndim
        if dim is not None and not -ndim <= dim < ndim:
            raise PlaceError(f"a tensor of {ndim} dimensions has no dimension {dim}")
        dims = [d for d, s in enumerate(self._array.shape) if s == 1 and (dim is None or d == dim % ndim)]
        self._layout = "".join(c for d, c in enumerate(self._layout) if d not in dims)
        self._array = self._array.squeeze(tuple(dims))
        return bool(dims)

    def __str__(self) -> str:
        return self._described(np.array2string(self._array, threshold=100, edgeitems=2))

    def __repr__(self) -> str:
        return self._described("")

    def _described(self, values: str) -> str:
        return describe("TensorCPU", values, self.dtype, self._layout, f"shape={self._array.shape}")

    def _repr_html_(self) -> str | None:
        from .thumbnails import grid

        return grid(f"TensorCPU {self.shape()} {self.dtype.name}", [self._array], self._layout, [self._source])


class TensorListCPU(TensorList):
    """The samples of a batch in CPU memory; their shapes may differ.

    Parameters
    ----------
    source
        A list of `TensorCPU` or arrays of one type and number of dimensions, an array whose first axis is the batch, a
        DLPack capsule of one, or a `TensorListCPU`.
    layout
        The layout of a sample, such as "HWC". By default that of the samples.
    contiguous
        Whether to copy the samples of a list into one block.

    >>> import numpy as np
    >>> batch = TensorListCPU([np.zeros((4, 6, 3), np.uint8), np.zeros((2, 5, 3), np.uint8)], "HWC")
    >>> batch.is_dense_tensor(), batch.shape()
    (False, [(4, 6, 3), (2, 5, 3)])
    """

    _batch: Batch

    def __init__(self, source: Any, layout: str | None = None, is_pinned: bool = False, contiguous: bool = False):
        if isinstance(source, TensorListCPU):
            self._batch = source._batch
        elif isinstance(source, Batch):
            self._batch = source
        elif isinstance(source, (list, tuple)):
            self._batch = _batch_of([t if isinstance(t, TensorCPU) else TensorCPU(t) for t in source], contiguous)
        else:
            array = as_numpy(source)
            if not array.ndim:
                raise ArgumentValueError("the first axis of an array is the batch; got a scalar")
            dtypes.from_numpy(array.dtype)
            self._batch = Batch.from_array(array)
            if not array.flags.writeable:
                self._batch.protect()
        if layout is not None:
            self.set_layout(layout)

    @staticmethod
    def broadcast(sample: Any, num_samples: int) -> TensorListCPU:
        """Returns a batch that has the same sample, a `TensorCPU` or an array, `num_samples` times."""
        tensor = sample if isinstance(sample, TensorCPU) else TensorCPU(sample)
        return TensorListCPU(np.repeat(tensor._array[None], num_samples, axis=0), tensor.layout())

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Creates a batch from a list of arrays that support DLPack."""
        return TensorListCPU([as_numpy(o) for o in list_of_objects], layout, contiguous=contiguous)

    def __getitem__(self, i: int) -> TensorCPU:
        tensor = TensorCPU(self.at(i), self._batch.spec.layout)
        if self._batch.sources is not None:
            tensor._source = self._batch.sources[i]
        return tensor

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def at(self, i: int) -> np.ndarray:
        """Returns sample i as a NumPy array that shares the memory."""
        return self._batch.sample(self._number(i))

    def as_array(self) -> np.ndarray:
        """Returns the batch as one NumPy array, without a copy if the samples are contiguous. Raises ValueError if they
        differ in shape."""
        try:
            return self._batch.array()
        except ValueError as e:
            raise ShapeError(str(e)) from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.as_array()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **kwargs: Any) -> Any:
        return dlpack(self.as_array(), kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def as_tensor(self) -> TensorCPU:
        """Returns the batch as one tensor whose first axis is the batch. Raises ValueError if the samples differ in
        shape."""
        layout = self._batch.spec.layout
        return TensorCPU(self.as_array(), "N" + layout if layout else "")

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorCPU:
        """Returns the batch as one tensor of another shape with the same number of elements."""
        have, want = int(self._batch.spec.volumes().sum()), int(np.prod(shape))
        if have != want:
            raise ShapeError(
                f"a batch of {have} elements can't become a tensor of shape {list(shape)}, which has {want}"
            )
        return TensorCPU(self._flat().reshape(shape))

    def _flat(self) -> np.ndarray:
        """Returns all elements of all samples; a copy if the samples differ in shape."""
        if self.is_dense_tensor():
            return self.as_array().reshape(-1)
        return np.concatenate([self.at(i).reshape(-1) for i in range(len(self))])

    def as_cpu(self) -> TensorListCPU:
        return self

    def data_ptr(self) -> int:
        """The address of the first element."""
        if self.is_dense_tensor():
            return self.as_array().ctypes.data
        return int(self._batch.rows["data"][0])

    def copy_to_external(self, ptr: Any) -> None:
        """Copies all samples, one behind the other, to an address, a ctypes pointer or object, or an array."""
        copy_out(self._flat(), ptr)

    def reset(self) -> None:
        """Releases the samples."""
        spec = self._batch.spec
        self._batch = Batch.from_array(np.empty((0,) * (1 + spec.ndim), spec.dtype), spec.layout)

    def __reduce__(self) -> Any:
        return TensorListCPU, ([self.at(i) for i in range(len(self))], self.layout())

    def __str__(self) -> str:
        content = [np.array2string(self.at(i), threshold=100, edgeitems=2) for i in range(min(len(self), 8))]
        more = f",\n ... and {len(self) - 8} more" if len(self) > 8 else ""
        return self._describe("[" + ",\n ".join(c.replace("\n", "\n ") for c in content) + more + "]")

    def _repr_html_(self) -> str | None:
        from .thumbnails import grid

        title = " ".join(filter(None, (f"TensorListCPU of {len(self)}", self.layout(), self.dtype.name)))
        return grid(title, [self.at(i) for i in range(len(self))], self.layout(), self._batch.sources or [])


def _batch_of(tensors: list[TensorCPU], contiguous: bool) -> Batch:
    if not tensors:
        return Batch.from_array(np.empty((0,), "u1"))
    first = tensors[0]
    for i, t in enumerate(tensors):
        for what, a, b in (
            ("type", t.dtype.name, first.dtype.name),
            ("number of dimensions", t.ndim(), first.ndim()),
            ("layout", t.layout() or first.layout(), first.layout() or t.layout()),
        ):
            if a != b:
                raise TypeError(f"all samples of a batch need the same {what}: sample {i} has {a!r}, sample 0 {b!r}")
    layout = next((t.layout() for t in tensors if t.layout()), "")
    batch = Batch.from_samples([t._array for t in tensors], layout, [t._source for t in tensors])
    if not all(t._array.flags.writeable for t in tensors):
        batch.protect()
    return batch.packed_copy() if contiguous else batch
