# SPDX-License-Identifier: Apache-2.0
"""Erosion and dilation."""

from typing import Any, ClassVar

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame
from ._image_window import ImageWindow

# The kernel's borders, by the names of these operators.
_BORDERS = {"reflect_101": 0, "reflect": 1, "wrap": 2, "replicate": 3, "constant": 4}
_LARGEST_MASK = 1 << 24  # along an axis


class Morphology(ImageWindow, abstract=True):
    """Base of operators that select the smallest or largest value in a rectangular window."""

    kernel = "filter/morphology"
    dilates: ClassVar[bool] = False

    mask_size = PerFrame([int], [3, 3], "Width and height of the window. -1 means 3 x 3.")
    anchor = PerFrame(
        [int],
        [-1, -1],
        "Column and row of the window's element at the position of the output. Negative: the middle (size / 2).",
    )
    iterations = Arg(int, 1, "Number of times that the operation is applied.")
    border_mode = Arg(
        str,
        "constant",
        "Values outside the image: constant (ignored), replicate (aaa|abcd|ddd), reflect (cba|abcd|dcb), reflect_101 "
        "(dcb|abcd|cba) or wrap (bcd|abcd|abc).",
    )

    def setup(self) -> None:
        if self.values["border_mode"] not in _BORDERS:
            raise ValueError(
                f"border_mode='{self.values['border_mode']}' is not known; known are {', '.join(_BORDERS)}"
            )
        if self.values["iterations"] < 1:
            raise ValueError(f"iterations={self.values['iterations']} must be at least 1")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        size, anchor = two(a.mask_size, "mask_size"), two(a.anchor, "anchor")
        size = np.where((size == -1).any(axis=1, keepdims=True), 3, size)
        SampleErrors.where(
            (size < 1).any(axis=1), lambda i: f"`mask_size` must be positive, got {a.mask_size[i].tolist()}"
        )
        SampleErrors.where(
            (size > _LARGEST_MASK).any(axis=1),
            lambda i: f"`mask_size` is at most {_LARGEST_MASK}, got {size[i].tolist()}",
        )
        anchor = np.where(anchor < 0, size // 2, anchor)
        SampleErrors.where(
            (anchor >= size).any(axis=1),
            lambda i: f"`anchor` {anchor[i].tolist()} is not inside of the mask of size {size[i].tolist()}",
        )
        a.size, a.place = size, anchor

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {
            "size": a.size[:, ::-1],
            "anchor": a.place[:, ::-1],
            "border": _BORDERS[a.border_mode],
            "dilates": self.dilates,
            # Each iteration extends by at least one pixel; after this many, nothing changes any more.
            "iterations": np.minimum(a.iterations, x.extent("H") + x.extent("W")).astype("i4"),
            "n_outer": a.n_outer,
        }


def two(column: np.ndarray, name: str) -> np.ndarray:
    """Converts a column with width and height, or one value for both, to (n, 2)."""
    if column.shape[1] not in (1, 2):
        raise ValueError(f"`{name}` has {column.shape[1]} values; it takes one, or two: along the width and the height")
    return np.broadcast_to(column, (len(column), 2))
