# SPDX-License-Identifier: Apache-2.0
"""Pads samples to the size of the largest in the batch, or to a given size."""

from typing import Any

import numpy as np

from ...core.axes import all_axes, axes_given, axes_named, for_axes, rows_of
from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample


class Pad(Operator):
    """Pads the end of axes, to the largest sample of the batch, to `shape`, or to multiples of `align`.

    Accepts any type.

    >>> from penstock import fn, pipeline_def
    >>> import numpy as np
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = fn.external_source(source=lambda: [np.array([1, 2, 3], np.int32), np.array([4], np.int32)])
    ...     return fn.pad(x, fill_value=-1)
    >>> pipe().run()[0].at(1).tolist()
    [4, -1, -1]
    """

    kernel = "geometry/window"
    by_frame = False
    mixes_samples = True

    axes = PerSample([int], None, "Axes to pad; negative values count from the last. By default all.", ragged=True)
    axis_names = Arg(Layout, None, "Names of the axes to pad, instead of `axes`.")
    shape = PerSample(
        [int],
        None,
        "Minimum extent, for each of the axes or for all; 0 or less: that of the largest sample.",
        ragged=True,
    )
    align = PerSample([int], None, "Extents are padded to multiples of this; per axis or for all.", ragged=True)
    fill_value = PerSample(float, 0.0, "Value of the new elements; truncated and clamped for integer types.")

    def setup(self) -> None:
        if {"axes", "axis_names"} <= self.given:
            raise ValueError("give the axes either by `axes` or by `axis_names`, not both")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        axes, own = self._axes(a, x)
        rows = rows_of(x)
        extent = x.shape[rows, axes]
        least = _for_each(a, "shape", axes, own, -1)
        largest = x.shape.max(axis=0, initial=0)[axes]
        grown = np.maximum(extent, np.where(least > 0, least, largest))
        extent = grown if own is None else np.where(own, grown, extent)
        align = _for_each(a, "align", axes, own, 1)
        SampleErrors.where((align <= 0).any(axis=1), lambda i: f"`align` must be positive, got {align[i].tolist()}")
        shape = x.shape.copy()
        shape[rows, axes] = -(-extent // align) * align
        return x.like(shape=shape)

    def _axes(self, a: Arguments, x: Spec) -> tuple[np.ndarray, np.ndarray | None]:
        """Axes (n, k), and which of them are valid for each sample (None: all)."""
        if a.axis_names:
            return axes_named(x, a.axis_names, x.layout), None
        return (all_axes(x), None) if a.axes is None else axes_given(a, x)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"extent": x.shape, "channels": -1, "fill": a.fill_value.astype("f4")[:, None]}


def _for_each(a: Arguments, name: str, axes: np.ndarray, own: np.ndarray | None, default: int) -> np.ndarray:
    """Broadcasts one value for all axes, or one per axis, to (n, k)."""
    if getattr(a, name) is None:
        return np.full(axes.shape, default, "i8")
    return for_axes(a, name, axes, own, default).astype("i8")
