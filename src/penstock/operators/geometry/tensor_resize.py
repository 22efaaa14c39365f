# SPDX-License-Identifier: Apache-2.0
"""Resizes any axes of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import AxisError, SampleErrors, listed, no_axis
from ...core.op import Arg, Arguments, Layout, PerSample
from ._resampling import Resampling, source_windows
from ._resize_size import per_axis

_MODES = ("default", "stretch", "not_larger", "not_smaller")
_ROUNDING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round": lambda v: np.floor(v + np.float32(0.5)),
    "truncate": np.floor,
    "ceil": np.ceil,
}
_LARGEST, _FARTHEST = 1 << 30, 1 << 24  # extent of an axis; distance of a region's ends from the origin


class TensorResize(Resampling):
    """Resizes tensors along any `axes`, separably, to `sizes` or by `scales`.

    The range from the first to the last axis that changes may have at most three axes; those in it that do not change
    are copied. Any number of axes may precede and follow it. Types and filters are those of `resize`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((2, 8, 6, 5), 7, np.uint8))
    ...     return fn.tensor_resize(x, sizes=[4, 9], axes=[1, 2])
    >>> pipe().run()[0].at(0).shape
    (2, 4, 9, 5)
    """

    layouts = ()
    experimental = True
    by_frame = False
    windowed = ""
    sizes = PerSample(
        [float], None, "Extents of the output, one per axis or one for all. 0: absent; negative: flipped."
    )
    scales = PerSample(
        [float], None, "Factors of the input's extents, one per axis or one for all, instead of `sizes`."
    )
    axes = Arg([int], None, "Axes to resize. Negative values count from the last. By default all.")
    axis_names = Arg(Layout, None, "Names of the axes to resize, instead of `axes`.")
    alignment = PerSample(
        [float], [0.5], "Point of the region that is kept in place when a size is rounded: 0 the start, 1 the end."
    )
    mode = Arg(
        str, "default", 'How extents are computed, as in `resize`: "default", "stretch", "not_larger" or "not_smaller".'
    )
    size_rounding = Arg(str, "round", 'Rounding of sizes from `scales`: "round", "truncate" or "ceil".')
    max_size = Arg([float], None, "Maximum of the output's extents, one number or one per axis.")
    roi_start = PerSample([float], None, "Start of the region of interest, per axis. Requires `roi_end`.")
    roi_end = PerSample([float], None, "End of the region. If it is smaller than the start, the axis is flipped.")
    roi_relative = Arg(bool, False, "Whether the region is in multiples of the input's extents or in elements.")
    subpixel_scale = Arg(bool, True, "Whether to adjust the region when a size is rounded, so that the scale is exact.")

    def setup(self) -> None:
        super().setup()
        given = self.given
        if ("sizes" in given) == ("scales" in given):
            raise ValueError("give exactly one of `sizes` and `scales`")
        if {"axes", "axis_names"} <= given:
            raise ValueError("give the axes either by `axes` or by `axis_names`, not both")
        if ("roi_start" in given) != ("roi_end" in given):
            raise ValueError("roi_start and roi_end must be specified together")
        if self.values["mode"] not in _MODES:
            raise ValueError(f"invalid resize mode: {self.values['mode']!r}; accepted: {', '.join(_MODES)}")
        if "scales" in given and self.values["mode"] in ("not_larger", "not_smaller"):
            raise ValueError(f"mode {self.values['mode']!r} needs `sizes`; it can't be used with `scales`")
        if self.values["size_rounding"] not in _ROUNDING:
            raise ValueError(
                f"invalid size_rounding: {self.values['size_rounding']!r}; accepted: {', '.join(_ROUNDING)}"
            )

    def plan(self, a: Arguments, x: Spec) -> None:
        self.check_types(a, x)
        axes = self._axes(a, x)
        k = len(axes)
        extent = x.shape[:, axes].astype("f4")
        start, end = np.zeros_like(extent), extent
        if a.roi_start is not None:
            unit = extent if a.roi_relative else np.float32(1)
            start, end = per_axis(a, a.roi_start, "roi_start", k) * unit, per_axis(a, a.roi_end, "roi_end", k) * unit
            far = ~((np.abs(start) <= _FARTHEST) & (np.abs(end) <= _FARTHEST)).all(axis=1)
            SampleErrors.where(
                far,
                lambda i: (
                    f"the region of interest must lie within 2**24 elements of the tensor, got {start[i].tolist()} to "
                    f"{end[i].tolist()}"
                ),
            )
        region = np.abs(end - start)
        wanted = per_axis(a, a.sizes, "sizes", k) if a.scales is None else per_axis(a, a.scales, "scales", k) * extent
        SampleErrors.where(
            ~np.isfinite(wanted).all(axis=1), lambda i: f"the size must be finite numbers, got {wanted[i].tolist()}"
        )
        share = per_axis(a, a.alignment, "alignment", k)
        if k < x.ndim or axes != list(range(x.ndim)):
            # As in DALI, axes that are not given take part in the modes, with their own extent as the requested one.
            every = x.shape.astype("f4")
            start, end, wanted, region, share = (
                _spread(v, axes, to)
                for v, to in (
                    (start, 0 * every),
                    (end, every),
                    (wanted, every),
                    (region, every),
                    (share, 0 * every + 0.5),
                )
            )
            extent = every
        limit = np.full(x.ndim, np.inf, "f4")
        if a.max_size is not None:
            most = per_axis(a, np.array([a.max_size], "f4"), "max_size", k)[0]
            limit[axes] = np.where(most > 0, most, np.inf)
        real = _extents(a, np.abs(wanted), region, extent > 0, limit)
        SampleErrors.where(
            ~(real <= _LARGEST).all(axis=1), lambda i: f"an output of the size {listed(real[i])} is too large"
        )
        whole = _ROUNDING["round" if a.scales is None else a.size_rounding](real)
        size = np.where(extent == 0, 0, np.maximum(whole, 1)).astype("i8")
        kept = (wanted == 0) & (start > end) & (a.mode in ("default", "stretch"))  # only requested axes are flipped
        flip = kept | (wanted < 0)
        lo, hi = np.where(flip, end, start).astype("f8"), np.where(flip, start, end).astype("f8")
        if a.subpixel_scale:
            shown = np.where(real > 0, size / np.maximum(real, np.float32(0.1)).astype("f8"), 1)
            point = lo + (hi - lo) * share.astype("f8")
            lo, hi = point - (point - lo) * shown, point + (hi - point) * shown
        self._choose(a, x, lo, hi, size)

    def _axes(self, a: Arguments, x: Spec) -> list[int]:
        if a.axis_names is not None:
            names = str(a.axis_names)
            missing = [c for c in names if c not in x.layout]
            if missing:
                raise ValueError(no_axis(missing[0], "'axis_names'", x.layout))
            axes = [x.layout.index(c) for c in names]
        elif a.axes is not None:
            wrong = [d for d in a.axes if not -x.ndim <= d < x.ndim]
            if wrong:
                raise AxisError(
                    f"Axis index out of range: axes must be in [{-x.ndim}, {x.ndim - 1}] for {x.ndim} dimensions, "
                    f"got {wrong[0]}"
                )
            axes = [d % x.ndim for d in a.axes]
        else:
            axes = list(range(x.ndim))
        if len(set(axes)) != len(axes) or not axes:
            raise ValueError(f"axes must be at least one and differ from each other, got {axes}")
        return axes

    def _choose(self, a: Arguments, x: Spec, start, end, full) -> None:
        """Selects the two or three consecutive axes to resample: those that change in any sample, and those between."""
        changed = ((start != 0) | (end != x.shape) | (full != x.shape)).any(axis=0).nonzero()[0]
        first, last = (int(changed[0]), int(changed[-1]) + 1) if len(changed) else (0, 1)
        if last - first > 3:
            raise ValueError(f"at most 3 neighbouring axes can be resized; axes {first} to {last - 1} are more")
        if last - first == 1 and x.ndim > 1:  # a plane; the other axis does not change
            first, last = (first - 1, last) if first else (first, last + 1)
        a.around = slice(first, last)
        a.full, a.start, a.end, a.size = full, *(v[:, a.around].copy() for v in (start, end, full))

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(shape=a.full, dtype=a.dtype)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        return source_windows(a, x.shape, a.around, np.zeros_like(a.size), a.size)

    def params(self, a: Arguments, x: Spec, out: Spec, *others: Spec) -> dict[str, Any]:
        return {
            "roi_start": a.start,
            "roi_end": a.end,
            "in_size": x.shape[:, a.around],
            "out_size": a.size,
            "in_origin": x.origin[:, a.around],
            "first_axis": a.around.start,
            "n_axes": a.around.stop - a.around.start,
            "min_filter": a.min,
            "mag_filter": a.mag,
            "antialias": a.antialias,
        }


def _extents(a: Arguments, wanted: np.ndarray, region: np.ndarray, filled: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Extents (n, k), float32, before rounding: ratios of sizes are float32, means and limits of these float64, as in
    DALI."""
    given = (wanted > 0) & filled
    count = given.sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        scale = wanted / region
        if a.mode in ("default", "stretch"):
            mean: Any = 1.0
            if a.mode == "default" and not given.all():
                product = np.where(given, scale, 1).prod(axis=1, keepdims=True, dtype="f8")
                mean = product ** (1 / np.maximum(count, 1))
            real = np.minimum(np.where(given, wanted, np.where(region > 0, region * mean, 0).astype("f4")), limit)
        else:
            larger = a.mode == "not_smaller"
            one = np.where(given, scale, 0).max(axis=1) if larger else np.where(given, scale, np.inf).min(axis=1)
            most = np.where(region > 0, limit / region.astype("f8"), np.inf).min(axis=1)
            factor = np.minimum(one, most)[:, None]
            real = np.where(given & (scale == factor), wanted, np.where(region > 0, region * factor, 0))
    return np.where(count > 0, real, region).astype("f4")


def _spread(column: np.ndarray, axes: list[int], to: np.ndarray) -> np.ndarray:
    """Values (n, ndim): those of `column` at `axes`, those of `to` elsewhere."""
    out = to.copy()
    out[:, axes] = column
    return out
