# SPDX-License-Identifier: Apache-2.0
"""Operators that crop windows as in torchvision. Windows may exceed the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.batch import Spec
from ....core.errors import SampleErrors
from ....core.op import Arg, Arguments, Seeded
from ....graph import trace
from ....operators.geometry._crop_window import WindowCopy

_INT64 = np.dtype("i8")


class _Window(WindowCopy, abstract=True):
    devices = ("cpu", "gpu")
    layouts = ("HWC", "CHW")

    def cut(self, a: Arguments, x: Spec, top_left: np.ndarray, size: np.ndarray) -> None:
        """Sets the window by its position and size, each (n or 1, 2)."""
        at = slice(x.axis("H"), x.axis("H") + 2)
        start, extent = np.zeros_like(x.shape), x.shape.copy()
        start[:, at], extent[:, at] = top_left, size
        self.place(a, x, start, extent)

    def cut_by(self, a: Arguments, x: Spec, function: str, *values: int) -> None:
        """Sets the windows computed by a native function."""
        (start, at_start), (extent, at_extent) = (a.native.allocate(x.shape.shape, _INT64) for _ in range(2))
        a.native.call(function, x.shape, x.n, x.ndim, x.axis("H"), *values, at_start, at_extent)
        self.place(a, x, start, extent)


def size_in(x: Spec) -> np.ndarray:
    """Heights and widths (n, 2)."""
    return x.shape[:, x.axis("H") : x.axis("H") + 2]


class _CenterCrop(_Window):
    """Crops the centre. If this is between two pixels, the window begins at an even one; with padding, the odd pixel is
    added at the left and top."""

    size = Arg([int], doc="Height and width.")

    def plan(self, a: Arguments, x: Spec) -> None:
        self.cut_by(a, x, "centered_windows", *a.size)


class _RandomCrop(Seeded, _Window):
    """Crops at a random position, uniform inside the padded image."""

    size = Arg([int], doc="Height and width.")
    padding = Arg([int], doc="Left, top, right, bottom.")
    pad_if_needed = Arg(bool, False, "Whether pictures that are too small are padded, by as much on both sides.")

    def plan(self, a: Arguments, x: Spec) -> None:
        random = a.random
        epoch, position = np.ascontiguousarray(random.epoch, "u4"), np.ascontiguousarray(random.position, "u8")
        (start, at_start), (extent, at_extent) = (a.native.allocate(x.shape.shape, _INT64) for _ in range(2))
        bad = a.native.call(
            "random_places",
            *(random.key, epoch, position, x.shape, x.n, x.ndim, x.axis("H"), *a.size, *a.padding),
            *(a.pad_if_needed, at_start, at_extent),
        )
        if bad:
            left, top, right, bottom = a.padding
            SampleErrors.where(
                (size_in(x) + [top + bottom, left + right] < a.size).any(axis=1),
                lambda i: (
                    f"the crop of size {tuple(a.size)} is larger than the picture of {size_in(x)[i].tolist()} with "
                    "its padding; give a smaller size, more padding, or pad_if_needed=True"
                ),
            )
        self.place(a, x, start, extent)


class _Pad(_Window):
    padding = Arg([int], doc="Left, top, right, bottom.")

    def plan(self, a: Arguments, x: Spec) -> None:
        self.cut_by(a, x, "grown_windows", *a.padding)


class _Crop(_Window):
    """Crops a window given by the second input: top, left, height, width."""

    inputs = (2, 2)
    peeks = (1,)

    def plan(self, a: Arguments, x: Spec, where: Spec) -> None:
        assert a.batches[1] is not None
        window = a.batches[1].array()
        self.cut(a, x, window[:, :2], window[:, 2:])


def center_crop(data: Any, size: tuple[int, int]) -> Any:
    return trace.call(_CenterCrop, (data,), {"size": list(size), "out_of_bounds_policy": "constant"})


def random_crop(data: Any, **arguments: Any) -> Any:
    return trace.call(_RandomCrop, (data,), arguments)


def pad(data: Any, padding: tuple[int, int, int, int], mode: str, fill: list[float]) -> Any:
    return trace.call(_Pad, (data,), {"padding": list(padding), "out_of_bounds_policy": mode, "fill_values": fill})


def crop(data: Any, window: Any) -> Any:
    """Pixels outside the image are 0."""
    return trace.call(_Crop, (data, window), {"out_of_bounds_policy": "constant"})
