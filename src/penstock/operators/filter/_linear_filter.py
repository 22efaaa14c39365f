# SPDX-License-Identifier: Apache-2.0
"""Base of linear filters: spatial axes, and types of input and output."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Operator

_MOST_AXES = 3


def axes_of_space(x: Spec) -> tuple[int, int]:
    """The number of axes before the spatial ones (C, F, or both), and of spatial axes. C may follow."""
    layout = x.layout
    if not layout:
        if not 1 <= x.ndim <= _MOST_AXES:
            raise ValueError(
                f"an input without layout may have up to {_MOST_AXES} axes, got {x.ndim}; "
                "set a layout if some of them are channels or frames"
            )
        return 0, x.ndim
    inner = layout[:-1] if layout.endswith("C") else layout
    space = inner.lstrip("CF")
    outer = inner[: len(inner) - len(space)]
    if not 1 <= len(space) <= _MOST_AXES:
        raise ValueError(f"layout '{layout}' has {len(space)} axes of space; 1 to {_MOST_AXES} can be filtered")
    if "C" in space or "F" in space or len(set(outer)) < len(outer):
        raise ValueError(
            f"layout '{layout}' is not supported; channels go first or last, frames before what is filtered"
        )
    return len(outer), len(space)


class LinearFilter(Operator, abstract=True):
    """Base of filters that compute in float32 and keep the shape. `plan` sets `a.n_outer` and `a.n_space`."""

    dtype = Arg(
        DALIDataType,
        None,
        "Type of the output: FLOAT, or by default that of the input, with values rounded and clamped.",
    )

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        a.n_outer, a.n_space = axes_of_space(x)
        self.check_type(x)

    def check_type(self, x: Spec) -> None:
        if x.dtype.kind == "b":
            raise TypeError("input type bool is not supported; fn.cast converts it to a number")
        wanted = self.values["dtype"]
        if wanted is not None and to_numpy(wanted) not in (x.dtype, np.float32):
            supported = ", ".join(dict.fromkeys((x.dtype.name, "float32")))
            raise ValueError(
                f"output type {to_numpy(wanted).name} is not supported for an input of type {x.dtype.name}; "
                f"supported: {supported}"
            )

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        return x.like(dtype=a.dtype)


def per_axis(values: np.ndarray, name: str, n_space: int) -> np.ndarray:
    """Broadcasts a column with one value for all axes, or one per axis, to (n, n_space)."""
    if values.shape[1] not in (1, n_space):
        raise ValueError(f"`{name}` has {values.shape[1]} values; it takes one, or one per axis of space ({n_space})")
    return np.broadcast_to(values, (len(values), n_space))


class Separable(LinearFilter, abstract=True):
    """Base of sums of separable filters. `plan` also sets `a.size` (n, terms, n_space) and `a.windows` (n, terms,
    n_space, longest window); windows begin at index 0."""

    kernel = "filter/separable"

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        n, terms, axes, longest = a.windows.shape
        windows = a.native.zeros((n, terms, _MOST_AXES, longest), "f4")
        windows[...] = 1
        windows[:, :, _MOST_AXES - axes :] = a.windows
        size = a.native.zeros((n, 3, _MOST_AXES), "i4")
        size[...] = 1
        size[:, :terms, _MOST_AXES - axes :] = a.size
        return {
            "windows": windows.reshape(n, -1),
            "size": size.reshape(n, -1),
            "stride": longest,
            "terms": terms,
            "n_outer": a.n_outer,
            "n_space": axes,
        }
