# SPDX-License-Identifier: Apache-2.0
"""Crop windows of random area and aspect ratio."""

from __future__ import annotations

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator

_INT64 = np.dtype("i8")
_TINY = float(np.finfo("f4").tiny)


class RandomWindow(Operator, abstract=True):
    """Arguments of operators that crop randomly."""

    random_area = Arg([float], [0.08, 1.0], "Range of the window's area, as a share of the image's.")
    random_aspect_ratio = Arg(
        [float], [0.75, 4 / 3], "Range of the window's aspect ratio, width / height; uniform on a logarithmic scale."
    )
    num_attempts = Arg(int, 10, "Number of windows drawn before the largest possible one is used.")

    def setup(self) -> None:
        super().setup()
        # An area of 0 gives a window of one pixel; a ratio of 0 has no logarithm.
        for name, smallest, text in (("random_area", 0.0, "0 or more"), ("random_aspect_ratio", _TINY, "above 0")):
            v = self.values[name]
            if len(v) != 2 or not smallest <= v[0] <= v[1]:
                raise ValueError(f"{name} takes a range of numbers, [smallest, largest], {text}; got {v}")
        if self.values["num_attempts"] < 1:
            raise ValueError(f"num_attempts must be at least 1, got {self.values['num_attempts']}")
        self._ranges = [np.array(self.values[name], "f8") for name in ("random_area", "random_aspect_ratio")]
        for constant in self._ranges:
            constant.setflags(write=False)

    def draw(self, a: Arguments, shape: np.ndarray, at: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Origins and sizes (n, 2), int64, y first, of a random window for each image. `at`: the columns of `shape`
        (int64) with height and width. Both are 0 for an empty image.

        The area is drawn uniformly and the aspect ratio log-uniformly, until the window fits into the image and its
        aspect ratio after rounding is allowed. The position is uniform inside the image. If no attempt succeeds, or
        none can, the window is the largest with an allowed aspect ratio, reduced to an allowed area, at a random
        position.
        """
        n, random = a.n, a.random
        (origin, at_origin), (size, at_size) = (a.native.allocate((n, 2), _INT64) for _ in range(2))
        epoch, position = random.epoch.astype("u4", copy=False), random.position.astype("u8", copy=False)
        bad = a.native.call(
            "random_windows",
            *(random.key, epoch, position, n, shape, shape.shape[1], *at, *self._ranges),
            *(a.num_attempts, at_origin, at_size),
        )
        if bad:
            extents = shape[:, at]
            SampleErrors.where((extents < 0).any(axis=1), lambda i: f"negative height or width: {extents[i].tolist()}")
        return origin, size
