# SPDX-License-Identifier: Apache-2.0
"""Windows given by their ends: the arguments of `slice` and `decoders.image_slice`, and their arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.axes import all_axes, axes_given, axes_named, for_axes, rows_of
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample

_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


class SliceWindow(Operator, abstract=True):
    """Arguments of operators that return a window given by its ends, or by two inputs, anchor and shape."""

    inputs = (1, 3)

    start = PerSample([int], None, "Start of the window, in elements.", ragged=True)
    rel_start = PerSample([float], None, "Start of the window; 1.0 is the end of the input.", ragged=True)
    end = PerSample([int], None, "End of the window in elements, exclusive.", ragged=True)
    rel_end = PerSample([float], None, "End of the window; 1.0 is the end of the input.", ragged=True)
    shape = PerSample([int], None, "Shape of the window, in elements.", ragged=True)
    rel_shape = PerSample([float], None, "Shape of the window; 1.0 is that of the input.", ragged=True)
    axes = PerSample(
        [int],
        [1, 0],
        "Axes of the window, in the order of the values. Negative values count from the last; none means all.",
        ragged=True,
    )
    axis_names = Arg(Layout, Layout("WH"), "Names of the axes of the window, instead of `axes`.")
    normalized_anchor = Arg(bool, True, "Whether a second input of floats is relative.")
    normalized_shape = Arg(bool, True, "Whether a third input of floats is relative.")

    def setup(self) -> None:
        super().setup()
        given = self.given
        for group in (_STARTS, _ENDS):
            if len(given.intersection(group)) > 1:
                raise ValueError(f"give one of {', '.join(group)}; got {', '.join(n for n in group if n in given)}")
        if {"axes", "axis_names"} <= given:
            raise ValueError("give the axes either by `axes` or by `axis_names`, not both")
        self.named = [n for n in (*_STARTS, *_ENDS) if n in given]

    def slice_window(self, a: Arguments, x: Spec, n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
        """First element and extent, each (n, ndim), of the windows of samples like x. `n_inputs`: how many inputs give
        windows, besides the samples."""
        if n_inputs and self.named:
            raise ValueError(
                f"with the inputs anchor and shape, {', '.join(self.named)} can't be given; "
                "give the window by inputs or by arguments"
            )
        if n_inputs == 1 or not (n_inputs or self.named):
            raise ValueError("give the window by start, end, shape, ... or by two more inputs, anchor and shape")
        if "axes" in self.given:
            axes, own = axes_given(a, x)
        elif not a.axis_names:
            axes, own = all_axes(x), None
        else:  # without a layout, the input is treated as an image or a volume
            axes = axes_named(x, a.axis_names, x.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(x.ndim, ""))
            own = None
        rows = rows_of(x)
        extent = x.shape[rows, axes]
        if n_inputs:
            start, end = self._from_inputs(a, extent, own)
        else:
            start, end = self._from_arguments(a, extent, axes, own)
        start, end = _round(start), _round(end)
        SampleErrors.where(
            (end < start).any(axis=1),
            lambda i: f"the window ends before it begins: start {start[i].tolist()}, end {end[i].tolist()}",
        )
        first, size = np.zeros_like(x.shape), x.shape.copy()
        first[rows, axes] = start
        size[rows, axes] = end - start
        return first, size

    def _from_arguments(
        self, a: Arguments, extent: np.ndarray, axes: np.ndarray, own: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Real start and end; relative values are float32, as is their product with the size."""
        size = extent.astype("f4")

        def column(name: str, otherwise: Any) -> Any:
            return None if getattr(a, name) is None else for_axes(a, name, axes, own, otherwise)

        start, rel_start = (column(n, 0) for n in _STARTS)
        end, rel_end, shape, rel_shape = (column(n, extent if n in ("end", "shape") else 1) for n in _ENDS)
        for name, values in (("shape", shape), ("rel_shape", rel_shape)):
            if values is not None:
                SampleErrors.where(
                    (values < 0).any(axis=1), lambda i, n=name, v=values: f"negative {n} {v[i].tolist()}"
                )
        begin = (
            a.native.zeros(size.shape, "f8")
            if start is None and rel_start is None
            else start
            if start is not None
            else rel_start * size
        )
        if end is not None:
            stop = end
        elif rel_end is not None:
            stop = rel_end * size
        elif shape is not None:
            stop = begin.astype("f8") + shape  # may exceed int32 for long recordings
        elif rel_shape is not None and rel_start is not None:
            stop = np.maximum((rel_start.astype("f8") + rel_shape) * extent, begin)  # begin has float32 rounding errors
        elif rel_shape is not None:
            stop = begin + rel_shape * size
        else:
            stop = extent
        return begin.astype("f8"), stop.astype("f8")

    def _from_inputs(self, a: Arguments, extent: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Real start and end, in float64."""
        anchor, shape = (_column(a.peeked(i), extent, own, name) for i, name in ((1, "anchor"), (2, "shape")))
        start, size = anchor.astype("f8"), shape.astype("f8")
        # If both are relative, they are added before multiplying: the sum of the products would differ in the last bit.
        by_start, by_size = (
            anchor.dtype.kind == "f" and a.normalized_anchor,
            shape.dtype.kind == "f" and a.normalized_shape,
        )
        if by_start and by_size:
            begin, end = start * extent, (start + size) * extent
        else:
            begin = start * extent if by_start else start
            end = begin + (size * extent if by_size else size)
        return (begin, end) if own is None else (np.where(own, begin, 0), np.where(own, end, extent))


def _column(batch: Batch, extent: np.ndarray, own: np.ndarray | None, name: str) -> np.ndarray:
    """The values (n, k) of an input that has a value for each axis of a sample's window, and zeros where samples have
    fewer axes than others."""
    spec = batch.spec
    if spec.dtype.kind not in "iuf":
        raise ValueError(f"the input with the {name} has to be numbers; got {spec.dtype.name}; cast it first (fn.cast)")
    count = extent.shape[1]
    if own is None and spec.is_dense and int(spec.shape[:1].prod()) == count:
        return batch.array().reshape(-1, count)
    n_axes = np.full(len(batch), count) if own is None else own.sum(axis=1)
    wrong = spec.volumes() != n_axes
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"the input with the {name} needs a value for each of the axes of the window, {n_axes[i]} in sample {i}; "
            f"got the shape {spec.shape[i].tolist()}"
        )
    column = np.zeros((len(batch), count), spec.dtype)
    for i, n in enumerate(n_axes):
        column[i, :n] = batch.sample(i).ravel()
    return column


def _round(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, halves away from zero."""
    return np.trunc(x + np.copysign(0.5, x)).astype("i8")
