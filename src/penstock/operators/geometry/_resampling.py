# SPDX-License-Identifier: Apache-2.0
"""What the operators that resample share: filters, and which part of the input a part of the output depends on.

Output sample j of an axis looks at input coordinate `start + (j + 1/2) * scale - 1/2`, `scale = (end - start) / size`,
where input sample i covers i - 1/2 .. i + 1/2; its weights are a filter's values around that coordinate, divided by
their sum. When the image shrinks and `antialias` is on, the filter is stretched by |scale|. Samples beyond the image
repeat its border.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIInterpType, from_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample

_NN, _GAUSSIAN = DALIInterpType.INTERP_NN, DALIInterpType.INTERP_GAUSSIAN
_RADIUS = np.array([0.5, 1, 2, 3, 1, 1])  # half the support of each filter at scale 1
_LINEAR = DALIInterpType.INTERP_LINEAR
_INPUT_TYPES = ("uint8", "uint16", "int16", "float32")
IMAGES = ("HWC", "FHWC", "CHW", "FCHW", "CFHW")
VOLUMES = ("DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


class Resampling(Operator, abstract=True):
    """Arguments and rules of operators that resample.

    `plan` leaves on the arguments: `a.start`, `a.end` (n, k) float64, the region of interest, whose start is larger
    than its end where it is mirrored, and `a.size` (n, k) int64, the size it is resized to; k is the number of spatial
    axes.
    """

    kernel = "resample/resample"
    windowed = "DHW"
    interp_type = PerSample(DALIInterpType, _LINEAR, "Filter for enlarging and for shrinking.")
    min_filter = PerSample(DALIInterpType, _LINEAR, "Filter for axes that shrink; `interp_type` if not given.")
    mag_filter = PerSample(DALIInterpType, _LINEAR, "Filter for axes that do not shrink; `interp_type` if not given.")
    antialias = Arg(
        bool, True, "Stretches the filter when shrinking, so that every input pixel counts; not for INTERP_NN."
    )
    dtype = Arg(DALIDataType, None, "Type of the output: that of the input (the default) or FLOAT.")
    minibatch_size = Arg(int, 32, "Accepted for compatibility.", hidden=True)
    temp_buffer_hint = Arg(int, 0, "Accepted for compatibility.", hidden=True)

    def check_types(self, a: Arguments, x: Spec) -> None:
        """Refuses types and filters that do not exist, and settles which filters are meant."""
        if x.dtype.name not in _INPUT_TYPES:
            raise ValueError(
                f"unsupported type: {from_numpy(x.dtype)}; supported: UINT8, UINT16, INT16 and FLOAT (see fn.cast)"
            )
        if a.dtype not in (None, DALIDataType.FLOAT, from_numpy(x.dtype)):
            raise ValueError(
                f"the output must have the type of the input ({from_numpy(x.dtype)}) or FLOAT; got {a.dtype}"
            )
        a.min = a.min_filter if "min_filter" in a.given else a.interp_type
        a.mag = a.mag_filter if "mag_filter" in a.given else a.interp_type
        for name, column in (("min_filter", a.min), ("mag_filter", a.mag)):
            bad = (column < 0) | (column > _GAUSSIAN)
            SampleErrors.where(
                bad, lambda i, n=name, c=column: f"{n} is {c[i]}, which is no interpolation type (0 to 5)"
            )

    def outputs(self, a: Arguments, x: Spec) -> Spec | tuple[Spec, ...]:
        shape = x.shape.copy()
        shape[:, spatial(x)] = a.size
        return x.like(shape=shape, dtype=a.dtype)

    def origin(self, a: Arguments, out: Spec) -> np.ndarray:
        """(n, k) where the output's window begins in the image of `a.size`."""
        return out.origin[:, spatial(out)]

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        axes = spatial(x)
        origin, size = np.zeros_like(x.shape), x.shape.copy()
        begin = self.origin(a, out)
        lo, hi = source_range(a, x.shape[:, axes], begin, begin + out.stored[:, axes])
        origin[:, axes], size[:, axes] = lo, hi - lo
        return origin, size

    def params(self, a: Arguments, x: Spec, out: Spec, *others: Spec) -> dict[str, Any]:
        axes = spatial(x)
        return {
            "roi_start": _three(a.start),
            "roi_end": _three(a.end),
            "in_size": _three(x.shape[:, axes]),
            "out_size": _three(a.size),
            "in_origin": _three(x.origin[:, axes]),
            "out_origin": _three(self.origin(a, out)),
            "first_axis": axes.start,
            "n_axes": axes.stop - axes.start,
            "min_filter": a.min,
            "mag_filter": a.mag,
            "antialias": a.antialias,
        }


def spatial(x: Spec) -> slice:
    """The axes that are resampled."""
    first = x.layout.find("D") if "D" in x.layout else x.layout.find("H")
    return slice(first, x.layout.find("W") + 1)


def _three(columns: np.ndarray) -> np.ndarray:
    """The columns followed by zeros: kernels have three of each."""
    out = np.zeros((columns.shape[0], 3), columns.dtype)
    out[:, : columns.shape[1]] = columns
    return out


def source_range(
    a: Arguments, in_size: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which input samples lo .. hi - 1 (each (n, k)) outputs begin .. end - 1 read; as in the kernel's header."""
    extent, single = a.end - a.start, a.end.astype("f4") - a.start.astype("f4")
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(a.size > 0, extent / a.size, 0)
    chosen = np.where(a.size.astype("f4") < np.abs(single), a.min[:, None], a.mag[:, None])
    nearest = chosen == _NN
    stretch = np.where(a.antialias & (np.abs(scale) > 1), np.abs(scale), 1)
    radius = stretch * _RADIUS[chosen]
    center = a.start + 0.5 * scale - 0.5
    if nearest.any():  # single precision decides which neighbour wins a tie
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(nearest, np.where(a.size > 0, single / a.size.astype("f4"), 0), scale)
        center = np.where(nearest, a.start.astype("f4"), center)

    def at(j: np.ndarray) -> np.ndarray:
        exact = center + j * scale
        if nearest.any():
            j = j.astype("f4") + np.float32(0.5)
            return np.where(nearest, center.astype("f4") + j * scale.astype("f4"), exact)
        return exact

    mirrored = scale < 0
    first, last = at(np.where(mirrored, end - 1, begin)), at(np.where(mirrored, begin, end - 1))
    low = np.where(chosen == _GAUSSIAN, np.ceil(first - radius), np.floor(first - radius) + 1)
    high = np.ceil(last + radius) - 1
    low, high = np.where(nearest, np.floor(first), low), np.where(nearest, np.floor(last), high)
    lo, hi = np.clip(low, 0, np.maximum(in_size - 1, 0)), np.clip(high, 0, in_size - 1) + 1
    empty = (end <= begin) | (in_size == 0)
    return np.where(empty, 0, lo).astype("i8"), np.where(empty, 0, hi).astype("i8")
