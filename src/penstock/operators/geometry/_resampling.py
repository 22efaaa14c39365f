# SPDX-License-Identifier: Apache-2.0
"""Base of resampling operators: filters, and the part of the input that a part of the output depends on.

Output sample j of an axis is at input coordinate `start + (j + 1/2) * scale - 1/2`, `scale = (end - start) / size`,
where input sample i covers i - 1/2 .. i + 1/2. Its weights are a filter's values around that coordinate, divided by
their sum. If the image shrinks and `antialias` is set, the filter is stretched by |scale|. Outside the image, its
border is repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIInterpType, from_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample

_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN
_LINEAR = DALIInterpType.INTERP_LINEAR
_INPUT_TYPES = frozenset(map(np.dtype, ("uint8", "uint16", "int16", "float32")))
_INT64 = np.dtype("i8")
_BY_RULES = (
    DALIInterpType.INTERP_NN,
    DALIInterpType.INTERP_LINEAR,
    DALIInterpType.INTERP_TRIANGULAR,
    DALIInterpType.INTERP_CUBIC,
    DALIInterpType.INTERP_LANCZOS3,
)
IMAGES = ("HWC", "FHWC", "CHW", "FCHW", "CFHW")
RULES = {"dali": 0, "pillow": 1, "torch": 2, "pillow-box": 1, "torch-nearest-exact": 2}  # see resample.h
_FILTERS = {"pillow-box": 6, "torch-nearest-exact": 7}  # without a DALIInterpType; see resample.h
VOLUMES = ("DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


class Resampling(Operator, abstract=True):
    """Arguments and rules of operators that resample.

    `plan` sets `a.start`, `a.end` (n, k), float64: the region of interest, with start > end along mirrored axes; and
    `a.size` (n, k), int64: the size it is resized to. k is the number of spatial axes.
    """

    kernel = "resample/resample"
    windowed = "DHW"
    interp_type = PerSample(DALIInterpType, _LINEAR, "Filter for enlarging and for shrinking.")
    min_filter = PerSample(DALIInterpType, _LINEAR, "Filter for axes that shrink. If it is not given, `interp_type`.")
    mag_filter = PerSample(
        DALIInterpType, _LINEAR, "Filter for axes that do not shrink. If it is not given, `interp_type`."
    )
    antialias = Arg(
        bool, True, "Whether to stretch the filter when shrinking, so that every input pixel counts; not for INTERP_NN."
    )
    rule = Arg(
        str,
        "dali",
        'The library whose results are reproduced for uint8 images: "dali", "pillow" (`Image.resize`; always '
        'antialiased) or "torch" (`torch.nn.functional.interpolate`, as used by torchvision on tensors; INTERP_NN is '
        'its "nearest"). "pillow-box" and "torch-nearest-exact" are filters of these libraries without an '
        "`interp_type`, which then must not be given. With all rules but the first, a region of interest is resized "
        "as if it had been cropped before, rounded sizes do not move it, INTERP_GAUSSIAN and volumes are not "
        "supported, and the operator runs on the CPU.",
    )
    dtype = Arg(DALIDataType, None, "Type of the output: that of the input (the default) or FLOAT.")
    minibatch_size = Arg(int, 32, "Accepted for compatibility.", hidden=True)
    temp_buffer_hint = Arg(int, 0, "Accepted for compatibility.", hidden=True)

    def check_types(self, a: Arguments, x: Spec) -> None:
        """Raises errors for unsupported types and filters, and selects the filters."""
        if x.dtype not in _INPUT_TYPES:
            raise ValueError(
                f"unsupported type: {from_numpy(x.dtype)}; supported: UINT8, UINT16, INT16 and FLOAT (see fn.cast)"
            )
        if a.dtype not in (None, DALIDataType.FLOAT, from_numpy(x.dtype)):
            raise ValueError(
                f"the output must have the type of the input ({from_numpy(x.dtype)}) or FLOAT; got {a.dtype}"
            )
        if a.rule != "dali" and "D" in x.layout:
            raise ValueError(f'volumes ({x.layout}) can\'t be resized by rule={a.rule!r}; use rule="dali"')
        if a.rule in _FILTERS:
            a.min = a.mag = a.interp_type * 0 + _FILTERS[a.rule]
            return
        a.min = a.min_filter if "min_filter" in a.given else a.interp_type
        a.mag = a.mag_filter if "mag_filter" in a.given else a.interp_type
        for name, column in (("min_filter", a.min), ("mag_filter", a.mag)):
            if self.values[name if name in a.given else "interp_type"] is not None:
                continue  # a constant, already a DALIInterpType
            bad = (column < 0) | (column > _GAUSSIAN)
            SampleErrors.where(
                bad, lambda i, n=name, c=column: f"{n} is {c[i]}, which is not an interpolation type (0 to 5)"
            )

    def setup(self) -> None:
        super().setup()
        rule = self.values["rule"]
        if rule not in RULES:
            raise ValueError(f"rule takes one of {', '.join(map(repr, RULES))}; got {rule!r}")
        if rule == "dali":
            return
        for name in ("interp_type", "min_filter", "mag_filter"):
            if rule in _FILTERS and name in self.given:
                raise ValueError(f"rule={rule!r} also sets the filter: leave out {name}")
            if self.values[name] not in (None, *_BY_RULES):
                raise ValueError(
                    f"{name}={self.values[name]} is not supported by rule={rule!r}; accepted: NN, LINEAR, "
                    "TRIANGULAR, CUBIC, LANCZOS3"
                )

    def outputs(self, a: Arguments, x: Spec) -> Spec | tuple[Spec, ...]:
        return self.resized(a, x)

    def resized(self, a: Arguments, x: Spec) -> Spec:
        """The output, of size `a.size`."""
        shape, _ = a.native.allocate((x.n, x.ndim), _INT64)
        shape[...] = x.shape
        shape[:, spatial(x)] = a.size
        return x.like(shape=shape, dtype=a.dtype)

    def origin(self, a: Arguments, out: Spec) -> np.ndarray:
        """Origin (n, k) of the output's window in the image of size `a.size`."""
        return out.origin[:, spatial(out)]

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        return source_windows(a, x.shape, spatial(x), self.origin(a, out), out.stored[:, spatial(out)])

    def params(self, a: Arguments, x: Spec, out: Spec, *others: Spec) -> dict[str, Any]:
        axes = spatial(x)
        return {
            "roi_start": a.start,
            "roi_end": a.end,
            "in_size": x.shape[:, axes],
            "out_size": a.size,
            "in_origin": x.origin[:, axes],
            "out_origin": self.origin(a, out),
            "first_axis": axes.start,
            "n_axes": axes.stop - axes.start,
            "min_filter": a.min,
            "mag_filter": a.mag,
            "antialias": a.antialias,
            "rule": RULES[a.rule],
        }


def spatial(x: Spec) -> slice:
    """The resampled axes."""
    first = x.layout.find("D") if "D" in x.layout else x.layout.find("H")
    return slice(first, x.layout.find("W") + 1)


def source_windows(
    a: Arguments, shape: np.ndarray, axes: slice, at: np.ndarray, stored: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Windows (origin, size) of inputs of `shape` (n, ndim) that are read for windows of the output. `at`, `stored` (n,
    k): origin and size of these along the resampled `axes`."""
    n, ndim = shape.shape
    (origin, at_origin), (size, at_size) = a.native.allocate((n, ndim), _INT64), a.native.allocate((n, ndim), _INT64)
    a.native.call(
        "resample_windows",
        *(shape, n, ndim, axes.start, axes.stop - axes.start, a.start, a.end, a.size, a.min, a.mag, a.antialias),
        RULES[a.rule],
        *(at, stored, at_origin, at_size),
    )
    return origin, size
