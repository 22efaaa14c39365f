# SPDX-License-Identifier: Apache-2.0
"""The size to which an image is resized, and its region of interest."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors, listed
from ...core.op import Arg, Arguments, Operator, PerSample
from ...core.rows import allocate
from ._resampling import spatial

_MODES = ("default", "stretch", "not_larger", "not_smaller")  # as in kernels/resample/plan.cpp
_FLOAT32, _FLOAT64, _INT64 = np.dtype("f4"), np.dtype("f8"), np.dtype("i8")


class ResizeSize(Operator, abstract=True):
    """Arguments of the operators that resize.

    The size is given in exactly one of these ways: `resize_x`, `resize_y`, `resize_z`; `size`; `resize_shorter`;
    `resize_longer`. An extent of 0 is absent and is computed from the others by `mode`. A negative extent flips the
    axis.
    """

    size = PerSample(
        [float], None, "Size of the output, one number per spatial axis in the order of the layout, or one for all."
    )
    resize_x = PerSample(float, 0.0, "Width of the output in pixels. 0: not given; negative: flipped.")
    resize_y = PerSample(float, 0.0, "Height of the output in pixels. 0: not given; negative: flipped.")
    resize_z = PerSample(float, 0.0, "Depth of the output in voxels. 0: not given; negative: flipped.")
    resize_shorter = PerSample(float, 0.0, "Length of the shorter side in pixels; the aspect ratio is kept.")
    resize_longer = PerSample(float, 0.0, "Length of the longer side in pixels; the aspect ratio is kept.")
    mode = Arg(
        str,
        "default",
        'How extents are computed: "default" (absent ones are scaled by the geometric mean of the scales of the '
        'others), "stretch" (absent ones are kept), "not_larger" and "not_smaller" (the aspect ratio is kept; '
        "extents are at most, or at least, the given ones).",
    )
    max_size = Arg(
        [float],
        None,
        "Maximum of the output's extents, one number or one per axis; the aspect ratio is kept if the mode keeps it.",
    )
    roi_start = PerSample(
        [float],
        None,
        "Start of the region of interest, per axis in the order of the layout. Requires `roi_end`.",
    )
    roi_end = PerSample(
        [float], None, "End of the region of interest. If it is smaller than the start, the axis is flipped."
    )
    roi_relative = Arg(bool, False, "Whether the region is in multiples of the input's extents or in pixels.")
    subpixel_scale = Arg(
        bool,
        True,
        "Whether to adjust the region of interest when the size is rounded, so that the scale is exact.",
    )

    def setup(self) -> None:
        super().setup()
        given = self.given
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
        wanted, mode = _wanted(a, k)
        start = end = limit = None
        if a.roi_start is not None:
            start, end = per_axis(a, a.roi_start, "roi_start", k), per_axis(a, a.roi_end, "roi_end", k)
        if a.max_size is not None:
            limit = per_axis(a, np.array([a.max_size], _FLOAT32), "max_size", k)
            limit = np.where(limit > 0, limit, np.float32(np.inf))
            limit.setflags(write=False)  # constant
        (region, at), (a.size, at_size) = a.native.allocate((2, n, k), _FLOAT64), a.native.allocate((n, k), _INT64)
        a.start, a.end = region

        def plan(problem: int | None) -> int:
            return a.native.call(
                "resize_plan",
                *(x.shape, n, x.ndim, axes.start, k, wanted, start, end, a.roi_relative, limit),
                *(
                    _MODES.index(mode),
                    a.subpixel_scale and a.rule == "dali",
                    at_size,
                    at,
                    at + region.nbytes // 2,
                    problem,
                ),
            )

        if plan(None):
            problem, at_problem = allocate(n, np.dtype("i4"))
            plan(at_problem)
            SampleErrors.where(problem == 1, lambda i: f"the size must be finite numbers, got {wanted[i].tolist()}")
            SampleErrors.where(
                problem == 2,
                lambda i: (
                    "the region of interest must lie within 2**24 pixels of the image, got "
                    f"{a.start[i].tolist()} to {a.end[i].tolist()}"
                ),
            )
            SampleErrors.where(problem == 3, lambda i: f"an output of the size {listed(a.start[i])} is too large")


def per_axis(a: Arguments, column: np.ndarray, name: str, k: int) -> np.ndarray:
    """Broadcasts one value for all axes, or one per axis."""
    if column.shape[1] not in (1, k):
        raise ValueError(
            f"argument '{name}' takes a single value or {k} values, one per spatial axis; got {column.shape[1]}"
        )
    return column if column.shape[1] == k else np.repeat(column, k, axis=1)


def _wanted(a: Arguments, k: int) -> tuple[np.ndarray, str]:
    """Requested extents (n, k) (0: absent, negative: flipped), and their mode."""
    if a.size is not None:
        return per_axis(a, a.size, "size", k), a.mode
    for name, mode in (("resize_shorter", "not_smaller"), ("resize_longer", "not_larger")):
        if name in a.given:
            return np.stack([getattr(a, name)] * k, axis=1), mode
    return np.stack([a.resize_z, a.resize_y, a.resize_x][-k:], axis=1), a.mode
