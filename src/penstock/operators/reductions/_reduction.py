# SPDX-License-Identifier: Apache-2.0
"""Bases of operators that reduce tensors along some axes."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import AxisError, SampleErrors, no_axis
from ...core.kernels import MAX_DIMS
from ...core.op import Arg, Arguments, Layout, Operator

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")


class Reduction(Operator, abstract=True):
    """`plan` sets `a.reduced` (ndim,), whether an axis is reduced, `a.kept`, its negation, and `a.mask`, `a.reduced` in
    the kernels' form. A sequence is one tensor, and F an ordinary axis."""

    module = "reductions"
    by_frame = False
    axes = Arg([int], None, "Axes that are reduced; -1 is the last. By default all; none if empty.")
    axis_names = Arg(Layout, None, "Names of the axes that are reduced, such as 'HW', instead of `axes`.")
    keep_dims = Arg(bool, False, "Whether to keep reduced axes, with extent 1.")

    def setup(self) -> None:
        axes, names = self.values["axes"], self.values["axis_names"]
        if axes is not None and names is not None:
            raise ValueError("arguments 'axes' and 'axis_names' exclude each other; give one of them")
        for name, value in (("axes", axes), ("axis_names", names)):
            if value is not None and len(set(value)) < len(value):
                raise ValueError(f"argument '{name}' has an axis twice: {value}")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        if x.dtype.name not in TYPES:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(TYPES)}; fn.cast converts others"
            )
        reduced = np.zeros(x.ndim, bool)
        for axis in self._axes(x):
            if reduced[axis]:
                raise ValueError(f"argument 'axes' has an axis twice: {self.values['axes']}")
            reduced[axis] = True
        mask = np.zeros((1, MAX_DIMS), "u1")
        mask[0, : x.ndim] = reduced
        a.reduced, a.kept, a.mask = reduced, ~reduced, mask

    def _axes(self, x: Spec) -> list[int]:
        axes, names = self.values["axes"], self.values["axis_names"]
        if names is not None:
            for name in names:
                if name not in x.layout:
                    raise ValueError(no_axis(name, "'axis_names'", x.layout))
            return [x.axis(name) for name in names]
        for axis in axes or ():
            if not -x.ndim <= axis < x.ndim:
                raise AxisError(f"Axis index out of range: {axis} of 'axes' not in range [{-x.ndim}, {x.ndim - 1}]")
        return list(range(x.ndim)) if axes is None else axes

    def output_type(self, x: Spec) -> np.dtype:
        """The type of the output for an input."""
        return np.dtype("f4")

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        dtype = self.output_type(x)
        if a.keep_dims:
            return x.like(shape=np.where(a.reduced, 1, x.shape), dtype=dtype)
        layout = "".join(name for name, gone in zip(x.layout, a.reduced) if not gone)
        return x.like(shape=x.shape[:, a.kept], dtype=dtype, layout=layout)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"reduced": a.mask}


class TypedReduction(Reduction, abstract=True):
    """Base of reductions with an argument for the output type."""

    dtype = Arg(DALIDataType, None, "Type of the output.")

    def choices(self, x: np.dtype) -> list[str]:
        """Possible output types, the default first."""
        raise NotImplementedError

    def output_type(self, x: Spec) -> np.dtype:
        choices = self.choices(x.dtype)
        dtype = np.dtype(choices[0]) if self.values["dtype"] is None else to_numpy(self.values["dtype"])
        if dtype.name not in choices:
            raise TypeError(
                f"output type {dtype.name} is not supported for input type {x.dtype.name}; "
                f"supported: {', '.join(choices)}"
            )
        return dtype


class Spread(Reduction, abstract=True):
    """Base of reductions of squared distances from means, the second input."""

    inputs = (2, 2)
    kernel = "reductions/variance"
    ddof = Arg(int, 0, "Delta degrees of freedom: subtracted from the number of elements in the divisor.")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        (mean,) = more
        if mean.dtype != np.float32:
            raise TypeError(f"the mean takes float32, got {mean.dtype.name}; fn.cast converts it")
        expected = x.shape[:, a.kept].prod(axis=1)
        wrong = (mean.volumes() != expected) & (mean.volumes() != 1)
        SampleErrors.where(
            wrong,
            lambda i: (
                f"the mean has the shape {mean.shape[i].tolist()}; an input of shape {x.shape[i].tolist()} reduced "
                f"along the axes {a.reduced.nonzero()[0].tolist()} needs "
                f"{x.shape[i][a.kept].tolist()}, or one value"
            ),
        )


def wide(x: np.dtype) -> str:
    """The 64-bit integer type with the same signedness."""
    return "uint64" if x.kind == "u" else "int64"
