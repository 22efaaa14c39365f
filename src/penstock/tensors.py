# SPDX-License-Identifier: Apache-2.0
"""What a pipeline gives out: `TensorListCPU`, a batch, and `TensorCPU`, one of its samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .core import dtypes
from .core.batch import Batch, Spec
from .core.dtypes import DALIDataType


def _pointer(target: Any) -> int:
    """The address in an int, a ctypes pointer or object, or anything with an array interface."""
    if isinstance(target, int):
        return target
    if hasattr(target, "__array_interface__"):
        return int(target.__array_interface__["data"][0])
    value = getattr(target, "value", None)
    if isinstance(value, int):
        return value
    import ctypes

    return ctypes.addressof(target)


def _copy_out(array: np.ndarray, target: Any) -> None:
    import ctypes

    array = np.ascontiguousarray(array)
    ctypes.memmove(_pointer(target), array.ctypes.data, array.nbytes)


def _format(values: str) -> str:
    return "\n".join("    " + line for line in values.split("\n"))


class TensorCPU:
    """One sample, or a whole dense batch, in CPU memory.

    Shares its memory through `__array_interface__` and DLPack; the memory lives as long as anything refers to it.

    Parameters
    ----------
    object
        Anything with `__array__`, `__array_interface__` or `__dlpack__` on the CPU. Not copied if it is contiguous.
    layout
        The layout, such as "HWC"; "" for none.
    """

    def __init__(self, object: Any, layout: str = "", is_pinned: bool = False):
        array = object if isinstance(object, np.ndarray) else _as_numpy(object)
        dtypes.from_numpy(array.dtype)
        self._array = np.ascontiguousarray(array) if array.ndim else np.asarray(array)
        self._layout = layout or ""
        if self._layout and len(self._layout) != self._array.ndim:
            raise ValueError(f"layout '{layout}' has {len(layout)} axes, the tensor {self._array.ndim} dimensions")
        self._source = ""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._array.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **kwargs: Any) -> Any:
        kwargs.pop("stream", None)
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @property
    def dtype(self) -> DALIDataType:
        return dtypes.from_numpy(self._array.dtype)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def shape(self) -> list[int]:
        """Extents of the tensor."""
        return list(self._array.shape)

    def layout(self) -> str:
        return self._layout

    def set_layout(self, layout: str) -> None:
        TensorCPU(self._array, layout)
        self._layout = layout

    def source_info(self) -> str:
        """Where the sample came from: a file name, or a record of a container."""
        return self._source

    def get_property(self, key: str) -> Any:
        """`"layout"` or `"source_info"`."""
        if key not in ("layout", "source_info"):
            raise ValueError(f"a tensor has the properties 'layout' and 'source_info'; got '{key}'")
        return self._layout if key == "layout" else self._source

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.ctypes.data

    def as_cpu(self) -> TensorCPU:
        return self

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the content to an address, a ctypes object or an array."""
        _copy_out(self._array, ptr)

    def squeeze(self, dim: int | None = None) -> bool:
        """Drops dimensions of extent 1 (or the one given); says whether anything was dropped."""
        dims = [d for d, s in enumerate(self._array.shape) if s == 1 and (dim is None or d == dim % self._array.ndim)]
        self._layout = "".join(c for d, c in enumerate(self._layout) if d not in dims)
        self._array = self._array.squeeze(tuple(dims))
        return bool(dims)

    def __str__(self) -> str:
        layout = f'    layout="{self._layout}",\n' if self._layout else ""
        values = np.array2string(self._array, threshold=100, edgeitems=3)
        known = f'    dtype={self.dtype},\n{layout}    device="cpu",\n'
        return f"TensorCPU(\n{_format(values)},\n{known}    shape={self.shape()})"

    __repr__ = __str__


def _as_numpy(object: Any) -> np.ndarray:
    if hasattr(object, "__array_interface__") or hasattr(object, "__array__"):
        return np.asarray(object)
    if hasattr(object, "__dlpack__"):
        return np.from_dlpack(object)
    raise TypeError(f"expected an array (NumPy, DLPack or array interface), got {type(object).__name__}")


class TensorListCPU:
    """The samples of a batch in CPU memory; their shapes may differ.

    Parameters
    ----------
    source
        A list of `TensorCPU` or arrays of one type and number of dimensions, an array whose first axis is the batch,
        or a `TensorListCPU`.
    layout
        The layout of a sample, such as "HWC"; by default that of the samples.
    """

    def __init__(self, source: Any, layout: str | None = None, is_pinned: bool = False):
        if isinstance(source, TensorListCPU):
            self._batch: Batch = source._batch
        elif isinstance(source, Batch):
            self._batch = source
        elif isinstance(source, (list, tuple)):
            samples = [t if isinstance(t, TensorCPU) else TensorCPU(t) for t in source]
            self._batch = Batch.from_samples(
                [t._array for t in samples], samples[0].layout() if samples else "", [t._source for t in samples]
            )
        else:
            self._batch = Batch.from_array(_as_numpy(source))
        if layout is not None:
            self.set_layout(layout)

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, i: int) -> TensorCPU:
        tensor = TensorCPU(self.at(i), self._batch.spec.layout)
        if self._batch.sources is not None:
            tensor._source = self._batch.sources[i]
        return tensor

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def at(self, i: int) -> np.ndarray:
        """Sample i as a NumPy array that shares the memory."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"sample {i} of a batch of {len(self)}")
        return self._batch.sample(i % len(self))

    def as_array(self) -> np.ndarray:
        """The batch as one NumPy array, without a copy if the samples lie one behind the other. ValueError if they
        differ in shape."""
        return self._batch.array()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.as_array()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def as_tensor(self) -> TensorCPU:
        """The batch as one tensor, the batch axis first. ValueError if the samples differ in shape."""
        layout = self._batch.spec.layout
        return TensorCPU(self.as_array(), "N" + layout if layout else "")

    def as_reshaped_tensor(self, shape: list[int]) -> TensorCPU:
        """The batch as one tensor of another shape with the same number of elements."""
        return TensorCPU(self.as_array().reshape(shape))

    def as_cpu(self) -> TensorListCPU:
        return self

    def is_dense_tensor(self) -> bool:
        """Whether all samples have the same shape."""
        return self._batch.spec.is_dense

    @property
    def dtype(self) -> DALIDataType:
        return dtypes.from_numpy(self._batch.spec.dtype)

    @property
    def ndim(self) -> int:
        return self._batch.spec.ndim

    def shape(self) -> list[tuple[int, ...]]:
        """The shape of each sample."""
        return [tuple(s) for s in self._batch.spec.shape.tolist()]

    def layout(self) -> str:
        return self._batch.spec.layout

    def set_layout(self, layout: str) -> None:
        if layout and len(layout) != self.ndim:
            raise ValueError(f"layout '{layout}' has {len(layout)} axes, the samples {self.ndim} dimensions")
        spec = self._batch.spec
        self._batch = self._batch.relabel(Spec(spec.shape, spec.dtype, layout))

    def data_ptr(self) -> int:
        """The address of the first element of a dense batch."""
        return self.as_array().ctypes.data

    def copy_to_external(self, ptr: Any) -> None:
        """Copies all samples, one behind the other, to an address, a ctypes object or an array."""
        if self.is_dense_tensor():
            _copy_out(self.as_array(), ptr)
        else:
            _copy_out(np.concatenate([self.at(i).ravel() for i in range(len(self))]), ptr)

    def reset(self) -> None:
        """Lets go of the samples."""
        self._batch = Batch.from_array(np.empty((0, *([0] * self.ndim)), self._batch.spec.dtype))

    def __str__(self) -> str:
        layout = f'    layout="{self.layout()}",\n' if self.layout() else ""
        n_elements = int(self._batch.spec.volumes().sum())
        values = ""
        if 0 < n_elements < 1000:
            content = self.as_array() if self.is_dense_tensor() else [self.at(i) for i in range(len(self))]
            values = (
                _format(np.array2string(content, threshold=1000) if isinstance(content, np.ndarray) else repr(content))
                + ",\n"
            )
        known = f'    dtype={self.dtype},\n{layout}    device="cpu",\n    num_samples={len(self)},\n'
        return f"TensorListCPU(\n{values}{known}    shape={self.shape()})"

    __repr__ = __str__
