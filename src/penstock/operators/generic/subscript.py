# SPDX-License-Identifier: Apache-2.0
"""Indices and slices of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import PipelineAxisError, SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ...core.rows import MAX_DIMS


class _Index(PerSample):
    is_index = True


class Subscript(Operator):
    """Applies indices and slices to each sample. Called by `x[1:, 0, ..., -3:]`.

    Negative indices count from the end. An index removes its axis; an index out of range is an error of the sample.
    Slices follow Python's rules, with steps, and are cut to the extent. Both may differ from sample to sample:
    `x[i:, j]` with scalars of an integer type. `penstock.newaxis` adds an axis of extent 1, `penstock.newaxis("C")` a
    named one.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: np.arange(12).reshape(1, 3, 4), layout="HW")
    ...     return x[1:, ::-2]
    >>> pipe().run()[0].at(0).tolist()
    [[7, 5], [11, 9]]
    """

    kernel = "generic/subscript"
    sample_error = PipelineAxisError
    by_frame = False
    pattern = Arg(
        str,
        doc="One letter for each subscript: i an index, s a slice, : a whole axis, n a new axis, . all axes not named.",
    )
    names = Arg([str], None, "Names of the new axes, for the layout; all or none.")
    for _k in range(MAX_DIMS):
        vars()[f"at_{_k}"] = _Index(int, None, f"The index, if subscript {_k} is one.")
        vars()[f"lo_{_k}"] = _Index(int, None, f"Beginning of the slice, if subscript {_k} is one.")
        vars()[f"hi_{_k}"] = _Index(int, None, f"End of the slice, if subscript {_k} is one.")
        vars()[f"step_{_k}"] = _Index(int, None, f"The step of the slice, if subscript {_k} is one.")
    del _k

    def setup(self) -> None:
        pattern = self.values["pattern"]
        if pattern.count(".") > 1:
            raise ValueError("a subscript can have one ellipsis (...) only")
        if len(pattern) - pattern.count(".") > MAX_DIMS:
            raise ValueError(f"a subscript can have {MAX_DIMS} indices and slices; got {len(pattern)}")
        for k in range(MAX_DIMS):
            if self.values[f"step_{k}"] == 0:
                raise ValueError("the step of a slice can't be 0")

    def plan(self, a: Arguments, x: Spec) -> None:
        """Sets `start`, `count`, `step` (n, ndim) per input axis, and `of`, the input axis of each output axis (-1: new
        axis)."""
        named = sum(c in "is:" for c in a.pattern)
        if named > x.ndim:
            what = "a scalar" if not x.ndim else f"an input of {x.ndim} dimensions"
            raise ValueError(f"too many subscripts: {named} for {what}")
        shape = x.shape
        a.start, a.count, a.step = np.zeros_like(shape), shape.copy(), np.ones_like(shape)
        a.of, a.layout = [], ""
        names = iter(a.names or ())
        axis = 0
        for k, kind in enumerate(a.pattern):
            if kind == "n":
                a.of.append(-1)
                a.layout += next(names, "")
                continue
            axes = range(axis, axis + (x.ndim - named if kind == "." else 1))
            axis = axes.stop
            if kind == "i":
                self._index(a, k, axes[0], shape[:, axes[0]])
                continue
            if kind == "s":
                self._slice(a, k, axes[0], shape[:, axes[0]])
            a.of += axes
            a.layout += x.layout[axes.start : axes.stop]
        a.of += range(axis, x.ndim)
        a.layout += x.layout[axis:]
        if "n" in a.pattern and a.names is None:
            a.layout = ""
        if a.names is not None and not x.layout and any(axis >= 0 for axis in a.of):
            raise ValueError("new axes with names need an input with a layout; give the layout, or leave the names out")
        if len(a.of) > MAX_DIMS:
            raise ValueError(f"the output has {len(a.of)} dimensions; at most {MAX_DIMS} are possible")

    def _index(self, a: Arguments, k: int, axis: int, extent: np.ndarray) -> None:
        at = getattr(a, f"at_{k}").astype("i8")
        SampleErrors.where(
            (at < -extent) | (at >= extent),
            lambda i: f"index {at[i]} is out of range for axis {axis} of length {extent[i]}",
        )
        a.start[:, axis], a.count[:, axis] = np.where(at < 0, at + extent, at), 1

    def _slice(self, a: Arguments, k: int, axis: int, extent: np.ndarray) -> None:
        """Same as Python's `slice.indices`."""
        low, high, step = (getattr(a, f"{name}_{k}") for name in ("lo", "hi", "step"))
        step = np.ones_like(extent) if step is None else step.astype("i8")
        SampleErrors.where(step == 0, lambda i: "the step of a slice is 0")
        back = step < 0
        lowest, highest = np.where(back, -1, 0), np.where(back, extent - 1, extent)

        def bound(value: np.ndarray | None, default: np.ndarray) -> np.ndarray:
            if value is None:
                return default
            value = value.astype("i8")
            return np.clip(np.where(value < 0, value + extent, value), lowest, highest)

        begin = bound(low, np.where(back, highest, lowest))
        end = bound(high, np.where(back, lowest, highest))
        count = np.maximum(np.where(back, begin - end - step - 1, end - begin + step - 1) // np.abs(step), 0)
        a.start[:, axis], a.count[:, axis], a.step[:, axis] = np.where(count > 0, begin, 0), count, step

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = a.native.zeros((x.n, len(a.of)), "i8")
        shape[...] = 1
        for d, axis in enumerate(a.of):
            if axis >= 0:
                shape[:, d] = a.count[:, axis]
        return Spec(shape, x.dtype, a.layout)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        last = a.start + (a.count - 1) * a.step
        origin = np.where(a.count > 0, np.minimum(a.start, last), 0)
        return origin, np.where(a.count > 0, np.abs(last - a.start) + 1, 0)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        stride = np.ones_like(x.stored)
        for d in range(x.ndim - 2, -1, -1):
            stride[:, d] = stride[:, d + 1] * x.stored[:, d + 1]
        step = a.native.zeros((x.n, len(a.of)), "i8")
        for d, axis in enumerate(a.of):
            if axis >= 0:
                step[:, d] = a.step[:, axis] * stride[:, axis]
        return {"base": ((a.start - x.origin) * stride).sum(axis=1), "step": step}
