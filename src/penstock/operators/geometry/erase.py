# SPDX-License-Identifier: Apache-2.0
"""Fills regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.axes import axes_at, axes_named, rows_of
from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample, Pointwise

_NAN = float("nan")


class Erase(Pointwise):
    """Fills one or more regions of each sample with a value.

    `anchor` is where regions begin and `shape` their size, along each of `axes` or `axis_names`: one value per axis for
    the first region, then for the next one, and so on. Samples may have different numbers of regions. A region covers
    all other axes completely, for example channels and frames, and may extend beyond the sample. Its borders are
    computed as real numbers and truncated to integers. Without `anchor`, regions begin at 0; without both, the output
    is the input. Input: integers, float16 or float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(12, dtype=np.uint8).reshape(3, 4, 1), layout="HWC")
    ...     return fn.erase(x, anchor=[1, 1], shape=[2, 2], fill_value=99)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[0, 1, 2, 3], [4, 99, 99, 7], [8, 99, 99, 11]]
    """

    kernel = "geometry/erase"
    by_frame = False
    anchor = PerSample([float], [], "Beginning of each region, along each axis.", ragged=True)
    shape = PerSample([float], [], "Size of each region, along each axis.", ragged=True)
    axes = Arg([int], [1, 0], "Axes of `anchor` and `shape`. Negative values count from the last.")
    axis_names = Arg(str, "HW", "Names of these axes. Takes precedence over `axes`.")
    fill_value = PerSample([float], [0.0], "One value, or one per channel; truncated and clamped for integer types.")
    normalized = Arg(bool, False, "Whether `anchor` and `shape` are relative: 1.0 is the extent of the sample.")
    normalized_anchor = Arg(bool, False, "Whether `anchor` is relative.")
    normalized_shape = Arg(bool, False, "Whether `shape` is relative.")
    centered_anchor = Arg(bool, False, "Whether `anchor` is the centre of each region.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.kind not in "iuf" or x.dtype.itemsize == 8 and x.dtype.kind == "f":
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: integers, float16, float32; fn.cast converts"
            )
        if "axes" in self.given and "axis_names" not in self.given:
            axes = axes_at(x, np.broadcast_to(np.array(self.values["axes"]), (x.n, len(self.values["axes"]))))
        else:  # without a layout, the input is treated as an image or a volume
            axes = axes_named(x, self.values["axis_names"], x.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(x.ndim, ""))
        self._place(a, x, axes)
        self._fill(a, x)

    def _place(self, a: Arguments, x: Spec, axes: np.ndarray) -> None:
        """Begin and end (n, regions, ndim) in the whole sample."""
        v, n_axes = self.values, axes.shape[1]
        anchor, shape = (self._regions(a, name, n_axes) for name in ("anchor", "shape"))
        if anchor.shape[1] and not shape.shape[1]:
            raise ValueError("`anchor` needs a `shape` of the same length")
        if not anchor.shape[1]:
            anchor = np.where(np.isnan(shape), np.float32(_NAN), np.float32(0))
        counts = [(~np.isnan(c)).sum(axis=(1, 2)) for c in (anchor, shape)]
        SampleErrors.where(
            counts[0] != counts[1],
            lambda i: f"`anchor` and `shape` need the same number of values; got {counts[0][i]} and {counts[1][i]}",
        )
        regions = min(anchor.shape[1], shape.shape[1])  # further regions are ignored
        anchor, shape = anchor[:, :regions], shape[:, :regions]
        rows = rows_of(x)
        extent = x.shape[rows, axes].astype("f4")[:, None, :]
        if v["normalized"] or v["normalized_anchor"]:
            anchor = anchor * extent
        if v["normalized"] or v["normalized_shape"]:
            shape = shape * extent
        if v["centered_anchor"]:
            anchor = anchor - shape / 2
        a.begin = a.native.zeros((x.n, regions, x.ndim), "i8")
        a.end = np.repeat(x.shape[:, None, :], regions, axis=1)
        at = rows[:, :, None], np.arange(regions)[None, :, None], axes[:, None, :]
        a.begin[at], a.end[at] = _place_of(anchor), _place_of(anchor + shape)

    def _regions(self, a: Arguments, name: str, n_axes: int) -> np.ndarray:
        values = getattr(a, name).astype("f4", copy=False)
        missing = np.arange(values.shape[1]) >= a.lengths(name)[:, None]
        values = np.where(missing, np.float32(_NAN), values)  # missing values
        if n_axes == 0 or values.shape[1] % n_axes:
            raise ValueError(
                f"`{name}` needs {n_axes} values for each region, one for each axis; got {values.shape[1]}"
            )
        SampleErrors.where(
            (~np.isnan(values)).sum(axis=1) % n_axes != 0, lambda i: f"`{name}` needs {n_axes} values for each region"
        )
        return values.reshape(len(values), values.shape[1] // n_axes, n_axes)

    def _fill(self, a: Arguments, x: Spec) -> None:
        count = a.fill_value.shape[1]
        a.channels = -1
        if count > 1:
            a.channels = x.axis("C") if x.layout else x.ndim - 1
            if a.channels < 0:
                raise ValueError(f"`fill_value` has {count} values, but the layout '{x.layout}' has no channels")
            channels = x.shape[:, a.channels]
            SampleErrors.where(
                channels != count, lambda i: f"`fill_value` has {count} values for {channels[i]} channels"
            )

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        origin = out.origin[:, None, :]
        channels = a.channels
        fill = a.fill_value.astype("f4") if a.fill_value.shape[1] else np.zeros((x.n, 1), "f4")
        if channels >= 0 and out.origin[:, channels].any():
            wide = np.pad(fill, ((0, 0), (0, fill.shape[1])))
            fill = np.take_along_axis(wide, out.origin[:, channels, None] + np.arange(fill.shape[1]), axis=1)
        regions = a.begin.shape[1]
        empty = a.native.zeros((x.n, 1), "i8")
        return {
            "begin": (a.begin - origin).reshape(x.n, -1) if regions and x.ndim else empty,
            "end": (a.end - origin).reshape(x.n, -1) if regions and x.ndim else empty,
            "regions": regions,
            "fill": fill,
            "channels": channels,
        }


def _place_of(x: np.ndarray) -> np.ndarray:
    """Converts borders to integers; missing ones become empty regions."""
    return np.clip(np.where(np.isnan(x), np.float32(0), x), -(2.0**40), 2.0**40).astype("i8")
