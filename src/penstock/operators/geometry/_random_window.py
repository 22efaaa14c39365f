# SPDX-License-Identifier: Apache-2.0
"""Crop windows of random area and aspect ratio."""

from __future__ import annotations

import numpy as np

from ...core.op import Arg, Arguments, Operator


class RandomWindow(Operator, abstract=True):
    """Arguments of the operators that crop at random."""

    random_area = Arg([float], [0.08, 1.0], "Range of the window's area, as a share of the image's.")
    random_aspect_ratio = Arg(
        [float], [0.75, 1.333333], "Range of the window's aspect ratio, width / height; chosen on a logarithmic scale."
    )
    num_attempts = Arg(
        int, 10, "How often an area and an aspect ratio are drawn before the largest possible window is taken."
    )

    def setup(self) -> None:
        super().setup()
        for name in ("random_area", "random_aspect_ratio"):
            v = self.values[name]
            if len(v) != 2 or not 0 < v[0] <= v[1]:
                raise ValueError(f"{name} takes a range of positive numbers, [smallest, largest]; got {v}")
        if self.values["num_attempts"] < 1:
            raise ValueError(f"num_attempts must be at least 1, got {self.values['num_attempts']}")


def draw(a: Arguments, height: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Origins and sizes (n, 2), y first, of one window for each image.

    An area is drawn uniformly from its range and an aspect ratio log-uniformly, until both the window's extents and,
    after rounding, its aspect ratio are allowed; then a place uniformly among those inside the image. If no attempt
    succeeds, or none can, the window is the largest with an allowed aspect ratio, shrunk to an allowed area, at a
    random place.
    """
    lo, hi = a.random_aspect_ratio
    smallest, largest = a.random_area
    n, k = len(height), a.num_attempts
    h, w = height.astype("f8")[:, None], width.astype("f8")[:, None]
    u = a.random.uniform(2 * k).reshape(n, k, 2)
    area = (smallest + (largest - smallest) * u[..., 0]) * h * w
    ratio = np.exp(np.log(lo) + (np.log(hi) - np.log(lo)) * u[..., 1])
    tall = np.maximum(np.rint(np.sqrt(area / ratio)), 1)
    wide = np.maximum(np.rint(np.sqrt(area * ratio)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = (tall <= h) & (wide <= w) & (wide / tall >= lo) & (wide / tall <= hi)
    h, w = h[:, 0], w[:, 0]
    widest, tallest = np.maximum(np.floor(h * hi), 1), np.maximum(np.floor(w / lo), 1)
    too_wide, too_tall = h * widest < h * w * smallest, w * tallest < h * w * smallest
    first = fits.argmax(axis=1)
    found = fits[np.arange(n), first] & ~too_wide & ~too_tall
    size = np.stack([np.minimum(h, tallest), np.minimum(w, widest)], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = np.sqrt(np.minimum(1, largest * h * w / size.prod(axis=1)))
    shrink = np.where(too_wide | too_tall, 1, shrink)
    size = np.maximum(np.rint(size * shrink[:, None]), 1)
    chosen = np.stack([tall, wide], axis=2)[np.arange(n), first]
    size = np.where(found[:, None], chosen, size)
    size = np.minimum(size, np.stack([height, width], axis=1)).astype("i8")
    room = np.stack([height, width], axis=1) - size
    origin = np.floor(a.random.uniform(2, stream=1) * (room + 1)).astype("i8")
    return np.minimum(origin, room), size
