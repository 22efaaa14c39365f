# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: one sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...graph.node import OF_UFUNCS
from ...tensors.arrays import dlpack
from . import _making
from ._operands import arithmetic
from ._subscript import subscript
from ._value import Value, printed, text_of


class Tensor(Value):
    """One sample, such as an image, a label or a recording.

    Operators return tensors; `as_tensor` and `tensor` create them from the program's data. Arithmetic and `t[...]` work
    as in NumPy and return tensors.

    Parameters
    ----------
    data, dtype, device, layout
        As in `as_tensor`.
    copy
        Whether to copy the data.

    >>> import numpy as np
    >>> from penstock.experimental import dynamic as ndd
    >>> t = ndd.as_tensor(np.arange(6, dtype=np.uint8).reshape(2, 3), layout="HW")
    >>> t[0] + 1
    Tensor(
        [1 2 3],
        dtype=i32,
        layout="W",
        device="cpu",
        shape=(3,))
    """

    __slots__ = ()
    _is_batch = False

    def __init__(
        self,
        data: Any = None,
        dtype: Any = None,
        device: Any = None,
        layout: str | None = None,
        batch: Any = None,
        index_in_batch: int | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ):
        if batch is not None:
            data = batch.tensors[index_in_batch or 0]
        made = _making.make_tensor(data, dtype, device, layout, False, copy)
        self._take(made._samples(), made._external)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._samples().spec.shape[0].tolist())

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self._samples().spec.volumes()[0])

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self._samples().spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * self.itemsize

    def item(self) -> Any:
        """Returns the only element, as a Python number. Raises ValueError if there are more."""
        if self.size != 1:
            raise ValueError(f"item() is for a tensor of one element; this one has {self.size}")
        return self._array().item()

    def _array(self) -> np.ndarray:
        return self._host().sample(0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions, and its operators with an array or a number on the left, return arrays, as in DALI. On the
        GPU, such operators return tensors."""
        if self._device_type != "cpu" and not kwargs and method == "__call__" and ufunc.__name__ in OF_UFUNCS:
            return arithmetic(OF_UFUNCS[ufunc.__name__], *inputs)
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Tensor) else x for x in inputs), **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._device_type != "cpu":
            raise TypeError("the tensor is on the GPU and can't be read by NumPy; copy it with .cpu()")
        array = self._array()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._device_type != "cpu":
            raise AttributeError("__array_interface__: the tensor is on the GPU")
        return self._array().__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device_type != "gpu":
            raise AttributeError("__cuda_array_interface__: the tensor is on the CPU")
        return self._on_gpu().__cuda_array_interface__

    def _on_gpu(self) -> Any:
        from ...tensors import TensorGPU

        return TensorGPU._of(self._samples())  # type: ignore[arg-type]

    def __dlpack__(self, stream: Any = None, dl_device: Any = None, **kwargs: Any) -> Any:
        if self._device_type == "gpu":
            return self._on_gpu().__dlpack__(stream=stream)
        if dl_device is not None:
            kwargs["dl_device"] = dl_device
        return dlpack(self._array(), kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._device_type == "cpu" else (2, self._device_id() or 0)

    def torch(self, copy: bool = False) -> Any:
        """Returns the tensor as a PyTorch tensor, with the same memory unless `copy`. Requires PyTorch."""
        from .pytorch import _tensors

        if self._device_type == "gpu":
            return _tensors.of_device(self, copy)
        return _tensors.of_array(self._array(), copy)

    def __getitem__(self, ranges: Any) -> Tensor:
        return subscript(self, ranges)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def _scalar(self, kind: str) -> Any:
        if self.size != 1:
            raise TypeError(f"only a tensor of one element is {kind}; this one has {self.size}")
        return self._array().reshape(-1)[0]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(f"the truth of {self.size} elements is not one; use reductions.min or reductions.max")
        return self.size == 1 and bool(self._scalar("true or false"))

    def __int__(self) -> int:
        return int(self._scalar("an integer"))

    def __float__(self) -> float:
        return float(self._scalar("a number"))

    def __index__(self) -> int:
        value = self._scalar("an index")
        if value.dtype.kind not in "iu":
            raise TypeError(f"an index is an integer; the tensor is of {value.dtype.name}")
        return int(value)

    def __reduce__(self) -> Any:
        return _making.tensor, (np.array(self._array()), None, None, self.layout)

    def __repr__(self) -> str:
        return text_of("Tensor", printed(self._array()), self, f"shape={self.shape}")

    def _repr_html_(self) -> str | None:
        from ...tensors.thumbnails import grid

        sources = self._samples().sources or [""]
        return grid(f"Tensor {self.shape} {self.dtype}", [self._array()], self.layout or "", sources)


Value._kinds[False] = Tensor
