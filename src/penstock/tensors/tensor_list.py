# SPDX-License-Identifier: Apache-2.0
"""Base of the batches that pipelines return, on any device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core import dtypes
from ..core.batch import Batch
from ..core.dtypes import DALIDataType
from ..core.errors import ArgumentValueError, PlaceError

if TYPE_CHECKING:
    from typing_extensions import Self


class ShapeError(ValueError, RuntimeError):
    """Raised where the samples of a batch differ in shape but must not. Also a RuntimeError, as in DALI."""


def check_layout(layout: str | None, ndim: int, what: str) -> str:
    """The layout, or "". Raises ValueError if its number of axes differs."""
    layout = layout or ""
    if layout and len(layout) != ndim:
        raise ValueError(f"layout '{layout}' has {len(layout)} axes, {what} {ndim} dimensions")
    return layout


def same_size(dtype: np.dtype, new_type: DALIDataType) -> np.dtype:
    """The new type. Raises ValueError if its elements differ in size."""
    new = dtypes.to_numpy(new_type)
    if new.itemsize != dtype.itemsize:
        raise ArgumentValueError(
            f"{dtype.name} can't be seen as {new.name}: its elements have {dtype.itemsize} bytes, not {new.itemsize}"
        )
    return new


def describe(kind: str, values: str, dtype: DALIDataType, layout: str, rest: str, device: str = "cpu") -> str:
    """The `repr` of a container."""
    lines = ["    " + line for line in values.split("\n")] if values else []
    lines[-1:] = [line + "," for line in lines[-1:]]
    lines += (
        [f"    dtype={dtype},"]
        + [f'    layout="{layout}",'] * bool(layout)
        + [f'    device="{device}",', f"    {rest})"]
    )
    return "\n".join([f"{kind}(", *lines])


_OF_TORCH = frozenset("clone cpu cuda detach double expand float half int long permute to type unsqueeze".split())


def no_attribute(kind: type, name: str) -> AttributeError:
    """The error for an attribute that arrays and tensors of other libraries have, and says how to make one."""
    hint = ""
    if name in _OF_TORCH:
        hint = "; torch.from_dlpack(x) makes a tensor of PyTorch, which has it"
    elif name in ("array", "numpy") or (hasattr(np.ndarray, name) and not name.startswith("_")):
        x = "x.as_cpu()" if getattr(kind, "_device", "cpu") == "gpu" else "x"
        hint = f"; np.asarray({x}) makes an array of NumPy" + ", which has it" * (name not in ("array", "numpy"))
    return AttributeError(f"'{kind.__name__}' object has no attribute '{name}'{hint}", name=name)


class TensorList:
    """Base of `TensorListCPU` and `TensorListGPU`: properties that do not require the data."""

    _batch: Batch
    _device: ClassVar[str] = "cpu"

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(type(self), name)

    @classmethod
    def of(cls, batch: Batch) -> Self:
        """A pipeline's output."""
        tensors = cls.__new__(cls)
        tensors._batch = batch
        return tensors

    def __len__(self) -> int:
        return len(self._batch)

    def _number(self, i: Any) -> int:
        """The index of sample i; negative values count from the end."""
        n = len(self._batch)
        if not hasattr(i, "__index__"):
            raise TypeError(f"a batch is indexed by the number of a sample; got {type(i).__name__}")
        if not -n <= i < n:
            raise PlaceError(f"a batch of {n} samples has no sample {i}")
        return i % n

    def is_dense_tensor(self) -> bool:
        """Whether all samples have the same shape."""
        return self._batch.spec.is_dense

    @property
    def dtype(self) -> DALIDataType:
        return dtypes.from_numpy(self._batch.spec.dtype)

    def ndim(self) -> int:
        """Number of dimensions of each sample."""
        return self._batch.spec.ndim

    def shape(self) -> list[tuple[int, ...]]:
        """The shape of each sample."""
        return [tuple(s) for s in self._batch.spec.shape.tolist()]

    def layout(self) -> str:
        return self._batch.spec.layout

    def set_layout(self, layout: str | None) -> None:
        layout = check_layout(layout, self.ndim(), "the samples")
        self._batch = self._batch.relabel(self._batch.spec.like(layout=layout))

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Reinterprets the bytes as elements of another type of the same size."""
        spec = self._batch.spec
        self._batch = self._batch.relabel(spec.like(dtype=same_size(spec.dtype, new_type)))

    def __repr__(self) -> str:
        return self._describe("")

    def _describe(self, values: str) -> str:
        rest = f"num_samples={len(self)},\n    shape={self.shape()}"
        return describe(type(self).__name__, values, self.dtype, self.layout(), rest, self._device)
