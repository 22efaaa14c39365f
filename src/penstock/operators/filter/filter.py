# SPDX-License-Identifier: Apache-2.0
"""Correlation with a filter that is data."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame
from ._linear_filter import LinearFilter

_TYPES = ("uint8", "uint16", "int8", "int16", "float16", "float32")
_BORDERS = ("reflect_101", "reflect_1001", "wrap", "clamp", "constant")  # in the order of the kernel
_ALIASES = {"101": "reflect_101", "1001": "reflect_1001", "reflect": "reflect_1001", "edge": "clamp"}
_ALIASES |= {"reflect101": "reflect_101", "reflect1001": "reflect_1001"}
_ALIASES |= {"fill": "constant", "pad": "constant"}
_MODES = ("same", "valid")


def _what(x: Spec) -> str:
    return f"the layout '{x.layout}'" if x.layout else "the input, which has no layout,"


class Filter(LinearFilter):
    """Correlates images and volumes with a filter: `out[p] = sum over i of filter[i] * in[p + i - anchor]`.

    Inputs: the data, with two or three spatial axes and channels first, last or absent (HW, HWC, CHW, DHWC, ...), of
    type uint8, int8, uint16, int16, float16 or float32; the filter, float32, with as many axes as the data has spatial
    axes; and optionally the value outside the data for `border="constant"`, a number of the data's type. For sequences,
    the filter and this value may have a layout that begins with F: one per frame. Sums are computed in float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[0, 0, 0, 6, 0, 0]]), layout="HW")
    ...     return fn.filter(x, types.Constant(np.float32([[1, 2, 3]])))
    >>> pipe().run()[0].at(0).tolist()
    [[0, 0, 18, 12, 6, 0]]
    """

    kernel = "filter/correlate"
    inputs = (2, 3)
    copied = (1, 2)
    experimental = True

    anchor = PerFrame(
        [int],
        [-1],
        "Index of the filter's element at the position of the output, for all axes or one per axis. -1 is the middle "
        "(size / 2, rounded down). Ignored for `mode='valid'`.",
    )
    border = Arg(
        str,
        "reflect_101",
        "Values outside the data: reflect_101 or 101 (dcb|abcd|cba), reflect_1001 or 1001 (cba|abcd|dcb), wrap "
        "(bcd|abcd|abc), clamp (aaa|abcd|ddd) or constant (input 2, or 0).",
    )
    mode = Arg(
        str, "same", "same: the output has the size of the input; valid: only positions where the whole filter fits."
    )

    def setup(self) -> None:
        border = self.values["border"].lower()
        border = _ALIASES.get(border, border)
        for name, value, known in (("border", border, _BORDERS), ("mode", self.values["mode"].lower(), _MODES)):
            if value not in known:
                raise ValueError(f"{name}='{self.values[name]}' is not known; known are {', '.join(known)}")
        self.border_number = _BORDERS.index(border)
        self.is_valid = self.values["mode"].lower() == "valid"

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        weights, fill = more[0], more[1] if len(more) > 1 else None
        if x.dtype.name not in _TYPES:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}; fn.cast converts others"
            )
        if a.n_space < 2:
            raise ValueError(f"{_what(x)} has {a.n_space} axis of space; 2 or 3 can be filtered")
        if weights.dtype != np.float32:
            raise TypeError(f"the filter is of type {weights.dtype.name}; it must be float32")
        if weights.ndim != a.n_space:
            raise ValueError(
                f"the filter has {weights.ndim} axes, {_what(x)} has {a.n_space} axes of space; they must be equal"
            )
        if fill is not None and fill.dtype != x.dtype:
            raise TypeError(
                f"input 2, the fill value, is of type {fill.dtype.name}; it must be of the type of the data, "
                f"{x.dtype.name}"
            )
        if fill is not None and (fill.volumes() != 1).any():
            raise ValueError(f"input 2, the fill value, must be one number, got shapes {fill.shape.tolist()[:4]}")
        a.size = weights.shape
        SampleErrors.where(
            (a.size < 1).any(axis=1), lambda i: f"the filter is empty: its shape is {a.size[i].tolist()}"
        )
        self._place(a, x)

    def _place(self, a: Arguments, x: Spec) -> None:
        """Sets `a.place` (n, n_space), the anchors, and `a.shape`, the shapes of the outputs."""
        a.shape = x.shape.copy()
        if self.is_valid:
            a.place = np.zeros_like(a.size)
            space = a.shape[:, a.n_outer : a.n_outer + a.n_space]
            space -= a.size - 1
            SampleErrors.where(
                (space < 1).any(axis=1),
                lambda i: (
                    f"the filter of shape {a.size[i].tolist()} is larger than the input of shape "
                    f"{x.shape[i].tolist()}, which mode='valid' does not allow"
                ),
            )
            return
        if a.anchor.shape[1] not in (1, a.n_space):
            raise ValueError(
                f"`anchor` has {a.anchor.shape[1]} values; it takes one, or one per axis of space ({a.n_space})"
            )
        anchor = np.broadcast_to(a.anchor, a.size.shape)
        SampleErrors.where(
            ((anchor < -1) | (anchor >= a.size)).any(axis=1),
            lambda i: f"`anchor` {anchor[i].tolist()} is not inside of the filter of shape {a.size[i].tolist()}",
        )
        a.place = np.where(anchor == -1, a.size // 2, anchor)

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        return x.like(shape=a.shape, dtype=a.dtype)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        anchor = a.native.zeros((len(a.place), 3), "i4")
        anchor[:, 3 - a.n_space :] = a.place
        return {
            "anchor": anchor,
            "border": self.border_number,
            "has_fill": len(specs) > 3,
            "n_outer": a.n_outer,
            "n_space": a.n_space,
        }
