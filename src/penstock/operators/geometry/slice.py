# SPDX-License-Identifier: Apache-2.0
"""Extracts a window given by start and end or shape, absolute or relative."""

from typing import Any

import numpy as np

from ...core.axes import axes_given, axes_named, for_axes, rows_of
from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, PerSample
from ._crop_window import WindowCopy

_STARTS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


class Slice(WindowCopy):
    """Extracts a window from each sample. After a decoder, only the window is decoded.

    The window is given by `start` or `rel_start` (by default 0) and one of `end`, `rel_end`, `shape`, `rel_shape` (by
    default the end of the input), with one value for each of `axes` or `axis_names`. Relative values are multiples of
    the input's extents. Alternatively, it is given by two more inputs, anchor and shape: integers are absolute; floats
    are relative, unless `normalized_anchor` or `normalized_shape` is False. Start and end are computed as real numbers,
    then rounded (halves away from zero). Values are converted to FLOAT, FLOAT16 or UINT8 without rounding (truncated
    and clamped).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(20, dtype=np.uint8).reshape(4, 5, 1), layout="HWC")
    ...     return fn.slice(x, rel_start=[0.0, 0.5], shape=[2, 2])
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[10, 11], [15, 16]]
    """

    inputs = (1, 3)
    peeks = (1, 2)

    start = PerSample([int], None, "Start of the window, in elements.", ragged=True)
    rel_start = PerSample([float], None, "Start of the window; 1.0 is the end of the input.", ragged=True)
    end = PerSample([int], None, "End of the window in elements, exclusive.", ragged=True)
    rel_end = PerSample([float], None, "End of the window; 1.0 is the end of the input.", ragged=True)
    shape = PerSample([int], None, "Shape of the window, in elements.", ragged=True)
    rel_shape = PerSample([float], None, "Shape of the window; 1.0 is that of the input.", ragged=True)
    axes = PerSample(
        [int],
        [1, 0],
        "Axes of the window, in the order of the values. Negative values count from the last.",
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

    def plan(self, a: Arguments, x: Spec, *arguments: Spec) -> None:
        named = self.named
        if arguments and named:
            raise ValueError(
                f"with the inputs anchor and shape, {', '.join(named)} can't be given; "
                "give the window by inputs or by arguments"
            )
        if len(arguments) == 1 or not (arguments or named):
            raise ValueError("give the window by start, end, shape, ... or by two more inputs, anchor and shape")
        if "axes" in self.given:
            axes, own = axes_given(a, x)
        else:  # without a layout, the input is treated as an image or a volume
            axes = axes_named(x, a.axis_names, x.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(x.ndim, ""))
            own = None
        count = axes.shape[1]
        rows = rows_of(x)
        extent = x.shape[rows, axes]
        if arguments:
            start, end = self._from_inputs(a, extent, count, own)
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
        self.place(a, x, first, size)

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

    def _from_inputs(
        self, a: Arguments, extent: np.ndarray, count: int, own: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Real start and end, in float64."""
        if own is not None:
            raise ValueError(
                "with the inputs anchor and shape all samples need as many `axes`; got "
                f"{', '.join(map(str, own.sum(axis=1)[:4]))}, ...; give the window by arguments"
            )
        columns = []
        for i, name in ((1, "anchor"), (2, "shape")):
            batch = a.peeked(i)
            if not batch.spec.is_dense or int(batch.spec.shape[:1].prod()) != count:
                raise ValueError(
                    f"input {i} ({name}) needs {count} values per sample, one for each axis; "
                    f"got shapes {batch.spec.shape.tolist()[:4]}"
                )
            columns.append(batch.array().reshape(-1, count))
        anchor, shape = columns
        if anchor.dtype.kind not in "iuf" or shape.dtype.kind not in "iuf":
            raise ValueError(f"anchor and shape must be numbers; got {anchor.dtype.name} and {shape.dtype.name}")
        start, size = anchor.astype("f8"), shape.astype("f8")
        # If both are relative, they are added before multiplying: the sum of the products would differ in the last bit.
        by_start, by_size = (
            anchor.dtype.kind == "f" and a.normalized_anchor,
            shape.dtype.kind == "f" and a.normalized_shape,
        )
        if by_start and by_size:
            return start * extent, (start + size) * extent
        start = start * extent if by_start else start
        return start, start + (size * extent if by_size else size)


def _round(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, halves away from zero."""
    return np.trunc(x + np.copysign(0.5, x)).astype("i8")
