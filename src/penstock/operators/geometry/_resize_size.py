# SPDX-License-Identifier: Apache-2.0
"""The size an image is resized to, and which part of it."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ._resampling import spatial

_MODES = ("default", "stretch", "not_larger", "not_smaller")
_LARGEST = 1 << 30  # pixels along an axis


class ResizeSize(Operator, abstract=True):
    """Arguments of the operators that resize.

    The size is given in exactly one of these ways: `resize_x`, `resize_y`, `resize_z`; `size`; `resize_shorter`;
    `resize_longer`. An extent of 0 is absent and follows from the others by `mode`. A negative extent flips the axis.
    """

    size = PerSample(
        [float], None, "Size of the output, one number per spatial axis in the order of the layout, or one for all."
    )
    resize_x = PerSample(float, 0.0, "Width of the output.")
    resize_y = PerSample(float, 0.0, "Height of the output.")
    resize_z = PerSample(float, 0.0, "Depth of the output.")
    resize_shorter = PerSample(float, 0.0, "Length of the shorter side; the aspect ratio is kept.")
    resize_longer = PerSample(float, 0.0, "Length of the longer side; the aspect ratio is kept.")
    mode = Arg(
        str,
        "default",
        'What becomes of extents: "default" (absent ones are scaled by the geometric mean of the scales of the '
        'others), "stretch" (absent ones stay), "not_larger" and "not_smaller" (the aspect ratio is kept, no extent '
        "exceeds or falls below the given ones).",
    )
    max_size = Arg(
        [float],
        None,
        "Limit of the output's extents, one number or one per axis; the aspect ratio is kept where the mode keeps it.",
    )
    roi_start = PerSample(
        [float],
        None,
        "Start of the region of interest, per axis in the order of the layout; given together with `roi_end`.",
    )
    roi_end = PerSample(
        [float], None, "End of the region of interest; where it is smaller than the start, the axis is flipped."
    )
    roi_relative = Arg(bool, False, "Whether the region is given in units of the input's extents.")
    subpixel_scale = Arg(
        bool,
        True,
        "Whether the region of interest is adjusted when the size is rounded, so that the scale stays exact.",
    )

    def setup(self) -> None:
        super().setup()
        given = self.values["given"]
        ways = {"resize_x": "resize_x/y/z", "resize_y": "resize_x/y/z", "resize_z": "resize_x/y/z"}
        chosen = {
            ways.get(n, n)
            for n in given & {"size", "resize_x", "resize_y", "resize_z", "resize_shorter", "resize_longer"}
        }
        if len(chosen) != 1:
            got = f"got {', '.join(sorted(chosen))}" if chosen else "none was given"
            raise ValueError(
                "exactly one way of specifying the size must be used: resize_x, resize_y, resize_z; or size; or "
                f"resize_longer; or resize_shorter; {got}"
            )
        if "mode" in given and given & {"resize_shorter", "resize_longer"}:
            raise ValueError(
                "resize_shorter, resize_longer and mode are mutually exclusive; use size with mode, or leave mode out"
            )
        if self.values["mode"] not in _MODES:
            raise ValueError(f"invalid resize mode: {self.values['mode']!r}; accepted: {', '.join(_MODES)}")
        if ("roi_start" in given) != ("roi_end" in given):
            raise ValueError("roi_start and roi_end must be specified together")

    def plan_size(self, a: Arguments, x: Spec) -> None:
        """Sets a.start, a.end and a.size."""
        axes = spatial(x)
        n, k = x.n, axes.stop - axes.start
        extent = x.shape[:, axes]
        wanted, mode = _wanted(a, k, n)
        SampleErrors.where(
            ~np.isfinite(wanted).all(axis=1), lambda i: f"the size must be finite numbers, got {wanted[i].tolist()}"
        )
        start, end = np.zeros((n, k), "f4"), extent.astype("f4")
        if a.roi_start is not None:
            start, end = per_axis(a.roi_start, "roi_start", k), per_axis(a.roi_end, "roi_end", k)
            if a.roi_relative:
                start, end = start * extent.astype("f4"), end * extent.astype("f4")
            bad = ~(np.isfinite(start) & np.isfinite(end)).all(axis=1)
            SampleErrors.where(
                bad, lambda i: f"the region of interest must be finite, got {start[i].tolist()} to {end[i].tolist()}"
            )
        limit = None
        if a.max_size is not None:
            limit = per_axis(np.array([a.max_size], "f4"), "max_size", k)
            limit = np.where(limit > 0, limit, np.float32(np.inf))
        real = extents(np.abs(wanted), np.abs(end - start), extent == 0, mode, limit)
        SampleErrors.where(
            (real > _LARGEST).any(axis=1), lambda i: f"the output would have the size {real[i].tolist()}"
        )
        a.size = np.where(extent == 0, 0, np.maximum(np.floor(real + np.float32(0.5)), 1)).astype("i8")
        start, end = start.astype("f8"), end.astype("f8")
        if mode in ("default", "stretch"):
            # As in DALI, a reversed region flips only the axes whose extent was asked for.
            absent = wanted == 0
            start, end = np.where(absent, np.minimum(start, end), start), np.where(absent, np.maximum(start, end), end)
        flipped = wanted < 0
        start, end = np.where(flipped, end, start), np.where(flipped, start, end)
        if a.subpixel_scale:
            # Only the part of the region that the whole pixels show.
            with np.errstate(divide="ignore", invalid="ignore"):
                shown = np.where(real > 0, a.size / real.astype("f8"), 1)
            middle, half = (start + end) / 2, (end - start) / 2 * shown
            start, end = middle - half, middle + half
        a.start, a.end = start, end


def per_axis(column: np.ndarray, name: str, k: int) -> np.ndarray:
    """One value for all axes, or one for each."""
    if column.shape[1] not in (1, k):
        raise ValueError(
            f"argument '{name}' takes a single value or {k} values, one per spatial axis; got {column.shape[1]}"
        )
    return column if column.shape[1] == k else np.repeat(column, k, axis=1)


def _wanted(a: Arguments, k: int, n: int) -> tuple[np.ndarray, str]:
    """(n, k) requested extents (0: absent, negative: flipped) and the mode that goes with them."""
    if a.size is not None:
        return per_axis(a.size, "size", k), a.mode
    for name, mode in (("resize_shorter", "not_smaller"), ("resize_longer", "not_larger")):
        if name in a.given:
            return np.repeat(getattr(a, name)[:, None], k, axis=1), mode
    columns = [a.resize_z, a.resize_y, a.resize_x][-k:]
    return np.stack(columns, axis=1), a.mode


def extents(
    wanted: np.ndarray, region: np.ndarray, is_empty: np.ndarray, mode: str, limit: np.ndarray | None
) -> np.ndarray:
    """The output's extents (n, k) before rounding, from those wanted (0: absent) and the region's; in float32."""
    given = (wanted > 0) & ~is_empty
    count = given.sum(axis=1)
    one = np.float32(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(given, wanted / region, one)
        if mode in ("default", "stretch"):
            mean = scale.prod(axis=1, dtype="f4")
            mean = np.where(count == 2, np.sqrt(mean), mean)
            factor = mean if mode == "default" else np.ones_like(mean)
            real = np.where(given, wanted, np.where(region > 0, region * factor[:, None], 0))
            if limit is not None:
                real = np.minimum(real, limit)
        else:
            factor = (
                np.where(given, scale, np.inf).min(axis=1)
                if mode == "not_larger"
                else np.where(given, scale, 0).max(axis=1)
            )
            if limit is not None:
                factor = np.minimum(factor, np.where(region > 0, limit / region, np.inf).min(axis=1))
            real = np.where(region > 0, region * factor[:, None].astype("f4"), 0)
    return np.where((count == 0)[:, None], region, real).astype("f4")
