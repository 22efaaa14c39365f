# SPDX-License-Identifier: Apache-2.0
"""Base of operators that reduce axes."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import no_axis
from ...core.kernels import MAX_DIMS
from ...core.op import Arg, Arguments, Layout, Operator

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")


class Reduced(Operator, abstract=True):
    """`plan` sets `a.reduced` (n, ndim), whether an axis is reduced, and `a.mask`, the same in the kernels' form."""

    by_frame = False
    axes = Arg([int], None, "Axes that are reduced. By default all.")
    axis_names = Arg(Layout, None, "Names of the axes that are reduced, instead of `axes`.")

    def setup(self) -> None:
        axes, names = self.values["axes"], self.values["axis_names"]
        if axes is not None and names is not None:
            raise ValueError("arguments 'axes' and 'axis_names' exclude each other; give one of them")
        for name, value in (("axes", axes), ("axis_names", names)):
            if value is not None and not len(value):
                raise ValueError(f"argument '{name}' needs at least one axis; leave it out to reduce all")
            if value is not None and len(set(value)) < len(value):
                raise ValueError(f"argument '{name}' has an axis twice: {value}")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        if x.dtype.name not in TYPES:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(TYPES)}; fn.cast converts others"
            )
        mask = np.zeros((x.n, MAX_DIMS), "u1")
        mask[:, self.reduced_axes(x)] = 1
        a.mask, a.reduced = mask, mask[:, : x.ndim] != 0

    def has_axes(self) -> bool:
        return self.values["axes"] is not None or self.values["axis_names"] is not None

    def reduced_axes(self, x: Spec) -> list[int]:
        """The axes given by `axes` or `axis_names`; by default all."""
        if self.values["axis_names"] is not None:
            for name in self.values["axis_names"]:
                if name not in x.layout:
                    raise ValueError(no_axis(name, "'axis_names'", x.layout))
            return [x.axis(name) for name in self.values["axis_names"]]
        if self.values["axes"] is None:
            return list(range(x.ndim))
        for axis in self.values["axes"]:
            if not 0 <= axis < x.ndim:
                raise ValueError(f"axis {axis} of 'axes' is not in 0 .. {x.ndim - 1}")
        return self.values["axes"]
