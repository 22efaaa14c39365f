# SPDX-License-Identifier: Apache-2.0
"""Bases of operators that return arrays filled with one value."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.batch import Batch, Buffer, Spec, view
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample


class _OfShape(Operator, abstract=True):
    """Fills an array of a given shape with a number."""

    inputs = (0, 0)
    number: ClassVar[int] = 0
    is_prompt = True
    shape = PerSample([int], None, "Shape of the output. By default it is a scalar.")
    dtype = Arg(DALIDataType, DALIDataType.INT32, "Type of the output.")
    layout = Arg(Layout, None, "Layout of the output, with one name per axis.")

    def run(self, a: Arguments) -> Batch:
        shape = shape_of(a)
        spec = Spec(shape, to_numpy(self.values["dtype"]), layout_of(a.layout, shape.shape[1]))
        batch = Batch.allocate(spec)
        # Samples are in one block, and gaps between them may be written to.
        (block,) = batch.owners
        assert isinstance(block, Buffer)
        itemsize = spec.dtype.itemsize
        view(block.address, (block.nbytes // itemsize,), spec.dtype, block)[...] = self.number
        return batch


class _Like(Operator, abstract=True):
    """Fills an array of the input's shape with a number."""

    by_frame = False
    metadata = (0,)
    kernel = "generic/full"
    number: ClassVar[int] = 0
    dtype = Arg(DALIDataType, None, "Type of the output. By default that of the input.")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(dtype=a.dtype)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"from": -1, "value": self.number}


def shape_of(a: Arguments) -> np.ndarray:
    """Shapes (n, ndim) from the argument `shape`; scalars if it is not given."""
    if a.shape is None:
        return np.zeros((a.n, 0), "i8")
    negative = (a.shape < 0).any(axis=1)
    SampleErrors.where(negative, lambda i: f"extents can't be negative; shape is {a.shape[i].tolist()}")
    return a.shape.astype("i8")


def layout_of(layout: str | None, ndim: int) -> str:
    if layout and len(layout) != ndim:
        raise ValueError(f"layout='{layout}' has {len(layout)} names; the output has {ndim} axes")
    return str(layout or "")


def check_broadcast(value: Spec, shape: np.ndarray) -> None:
    """Raises SampleErrors unless `value` can be broadcast to `shape` (n, ndim), by NumPy's rules."""
    k = min(value.ndim, shape.shape[1])
    ours, theirs = value.shape[:, value.ndim - k :], shape[:, shape.shape[1] - k :]
    bad = ((ours != theirs) & (ours != 1)).any(axis=1) | (value.shape[:, : value.ndim - k] != 1).any(axis=1)
    SampleErrors.where(
        bad, lambda i: f"values of shape {value.shape[i].tolist()} can't fill an array of shape {shape[i].tolist()}"
    )
